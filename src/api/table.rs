//! The method table. To add a method, add a struct to the file of its group and a row here.

use super::method::MethodRow;
use super::{
    archive, artifact, attachment, auth_status, comparison, configure, context, events, execute, fork, initialize, message,
    message_list, model_list, options, permission, prompt, queue, result, session, session_list, status, title, turn, view,
    workspace, workspace_apply,
};

/// All methods.
pub const METHODS: &[MethodRow] = &[
    MethodRow::of::<initialize::Initialize>(),
    MethodRow::of::<initialize::Authenticate>(),
    MethodRow::of::<initialize::Logout>(),
    MethodRow::of::<auth_status::AuthStatus>(),
    MethodRow::of::<session::NewSession>(),
    MethodRow::of::<session::LoadSession>(),
    MethodRow::of::<session::ResumeSession>(),
    MethodRow::of::<fork::ForkSession>(),
    MethodRow::of::<session_list::ListSessions>(),
    MethodRow::of::<session::CloseSession>(),
    MethodRow::of::<session::DeleteSession>(),
    MethodRow::of::<archive::ArchiveSession>(),
    MethodRow::of::<archive::UnarchiveSession>(),
    MethodRow::of::<title::SetTitle>(),
    MethodRow::of::<options::SetMode>(),
    MethodRow::of::<options::SetConfigOption>(),
    MethodRow::of::<prompt::Prompt>(),
    MethodRow::of::<prompt::CancelTurn>(),
    MethodRow::of::<view::GetSession>(),
    MethodRow::of::<message_list::ListMessages>(),
    MethodRow::of::<configure::ConfigureSession>(),
    MethodRow::of::<configure::ReplaceMessages>(),
    MethodRow::of::<turn::ListTurns>(),
    MethodRow::of::<result::GetResult>(),
    MethodRow::of::<message::SendMessage>(),
    MethodRow::of::<queue::ListQueue>(),
    MethodRow::of::<queue::EditQueued>(),
    MethodRow::of::<queue::RemoveQueued>(),
    MethodRow::of::<message::RetryTurn>(),
    MethodRow::of::<execute::ExecuteCommand>(),
    MethodRow::of::<context::GetContext>(),
    MethodRow::of::<context::CompactSession>(),
    MethodRow::of::<permission::ListPermissions>(),
    MethodRow::of::<permission::AnswerPermission>(),
    MethodRow::of::<status::ListTools>(),
    MethodRow::of::<status::ListAgents>(),
    MethodRow::of::<model_list::ListModels>(),
    MethodRow::of::<status::GetStatus>(),
    MethodRow::of::<attachment::AddAttachment>(),
    MethodRow::of::<attachment::GetAttachment>(),
    MethodRow::of::<attachment::ListAttachments>(),
    MethodRow::of::<artifact::ListArtifacts>(),
    MethodRow::of::<artifact::GetArtifact>(),
    MethodRow::of::<workspace::CreateWorkspace>(),
    MethodRow::of::<workspace::ListWorkspaces>(),
    MethodRow::of::<workspace::GetWorkspace>(),
    MethodRow::of::<workspace::SetWorkspaceMetadata>(),
    MethodRow::of::<workspace_apply::ApplyWorkspace>(),
    MethodRow::of::<workspace::DeleteWorkspace>(),
    MethodRow::of::<comparison::StartComparison>(),
    MethodRow::of::<events::FollowEvents>(),
];

/// Finds the row of the method `name`.
pub(crate) fn method(name: &str) -> Option<&'static MethodRow> {
    METHODS.iter().find(|row| row.name == name)
}
