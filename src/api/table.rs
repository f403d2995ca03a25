//! The method table. To add a method, add a struct to the file of its group and a row here.

use super::dispatch::method::MethodRow;
use super::environment::auth_status;
use super::environment::comparison;
use super::environment::initialize;
use super::environment::model_list;
use super::environment::workspace;
use super::environment::workspace_apply;
use super::sessions::archive;
use super::sessions::artifact;
use super::sessions::attachment;
use super::sessions::configure;
use super::sessions::context;
use super::sessions::events;
use super::sessions::fork;
use super::sessions::message_list;
use super::sessions::options;
use super::sessions::session;
use super::sessions::session_list;
use super::sessions::status;
use super::sessions::title;
use super::sessions::view;
use super::turns::execute;
use super::turns::message;
use super::turns::permission;
use super::turns::prompt;
use super::turns::queue;
use super::turns::result;
use super::turns::turn;

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
