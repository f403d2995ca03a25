//! The method table. To add a method, add a struct to the file of its group and a row here.

use super::dispatch::method::MethodRow;
use super::environment::agent_processes;
use super::environment::auth_status;
use super::environment::comparison;
use super::environment::initialize;
use super::environment::model_list;
use super::environment::workspace;
use super::environment::workspace_apply;
use super::sessions::archive;
use super::sessions::artifact;
use super::sessions::attachment;
use super::sessions::command_list;
use super::sessions::configure;
use super::sessions::context;
use super::sessions::events;
use super::sessions::file_search;
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
pub static METHODS: [MethodRow; 54] = [
    MethodRow::new::<initialize::Initialize>(),
    MethodRow::new::<initialize::Authenticate>(),
    MethodRow::new::<initialize::Logout>(),
    MethodRow::new::<auth_status::AuthStatus>(),
    MethodRow::new::<session::NewSession>(),
    MethodRow::new::<session::LoadSession>(),
    MethodRow::new::<session::ResumeSession>(),
    MethodRow::new::<fork::ForkSession>(),
    MethodRow::new::<session_list::ListSessions>(),
    MethodRow::new::<session::CloseSession>(),
    MethodRow::new::<session::DeleteSession>(),
    MethodRow::new::<archive::ArchiveSession>(),
    MethodRow::new::<archive::UnarchiveSession>(),
    MethodRow::new::<title::SetTitle>(),
    MethodRow::new::<options::SetMode>(),
    MethodRow::new::<options::SetConfigOption>(),
    MethodRow::new::<prompt::Prompt>(),
    MethodRow::new::<prompt::CancelTurn>(),
    MethodRow::new::<view::GetSession>(),
    MethodRow::new::<message_list::ListMessages>(),
    MethodRow::new::<configure::ConfigureSession>(),
    MethodRow::new::<configure::ReplaceMessages>(),
    MethodRow::new::<turn::ListTurns>(),
    MethodRow::new::<result::GetResult>(),
    MethodRow::new::<message::SendMessage>(),
    MethodRow::new::<queue::ListQueue>(),
    MethodRow::new::<queue::EditQueue>(),
    MethodRow::new::<queue::RemoveFromQueue>(),
    MethodRow::new::<message::RetryTurn>(),
    MethodRow::new::<execute::ExecuteCommand>(),
    MethodRow::new::<context::GetContext>(),
    MethodRow::new::<context::CompactSession>(),
    MethodRow::new::<permission::ListPermissions>(),
    MethodRow::new::<permission::AnswerPermission>(),
    MethodRow::new::<command_list::ListCommands>(),
    MethodRow::new::<file_search::SearchFiles>(),
    MethodRow::new::<status::ListTools>(),
    MethodRow::new::<status::ListAgents>(),
    MethodRow::new::<agent_processes::StopAgents>(),
    MethodRow::new::<model_list::ListModels>(),
    MethodRow::new::<status::GetStatus>(),
    MethodRow::new::<attachment::AddAttachment>(),
    MethodRow::new::<attachment::GetAttachment>(),
    MethodRow::new::<attachment::ListAttachments>(),
    MethodRow::new::<artifact::ListArtifacts>(),
    MethodRow::new::<artifact::GetArtifact>(),
    MethodRow::new::<workspace::CreateWorkspace>(),
    MethodRow::new::<workspace::ListWorkspaces>(),
    MethodRow::new::<workspace::GetWorkspace>(),
    MethodRow::new::<workspace::SetWorkspaceMetadata>(),
    MethodRow::new::<workspace_apply::ApplyWorkspace>(),
    MethodRow::new::<workspace::DeleteWorkspace>(),
    MethodRow::new::<comparison::StartComparison>(),
    MethodRow::new::<events::FollowEvents>(),
];

/// Finds the row of the method `name`.
pub(crate) fn method(name: &str) -> Option<&'static MethodRow> {
    METHODS.iter().find(|row| row.name == name)
}
