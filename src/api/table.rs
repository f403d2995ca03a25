//! The method table. To add a method, add a struct to the file of its group and a row here.

use super::comparison;
use super::dispatch::method::MethodRow;
use super::initialize;
use super::models;
use super::sessions::archive;
use super::sessions::artifact;
use super::sessions::command_list;
use super::sessions::configure;
use super::sessions::events;
use super::sessions::file_read;
use super::sessions::file_search;
use super::sessions::fork;
use super::sessions::message_list;
use super::sessions::resource_list;
use super::sessions::session;
use super::sessions::session_list;
use super::sessions::title;
use super::settings;
use super::sign_in;
use super::status;
use super::status::agent_processes;
use super::turns::context;
use super::turns::execute;
use super::turns::jobs;
use super::turns::message;
use super::turns::permission;
use super::turns::prompt;
use super::turns::queue;
use super::turns::result;
use super::turns::rules;
use super::turns::turn;
use super::views::attachment;
use super::views::options;
use super::views::view;
use super::workspaces;
use super::workspaces::apply;

/// All methods.
pub static METHODS: [MethodRow; 68] = [
    MethodRow::new::<initialize::Initialize>(),
    MethodRow::new::<initialize::Authenticate>(),
    MethodRow::new::<initialize::Logout>(),
    MethodRow::new::<sign_in::AuthStatus>(),
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
    MethodRow::new::<jobs::ListJobs>(),
    MethodRow::new::<jobs::ReadJob>(),
    MethodRow::new::<jobs::KillJob>(),
    MethodRow::new::<jobs::MoveToBackground>(),
    MethodRow::new::<context::GetContext>(),
    MethodRow::new::<context::CompactSession>(),
    MethodRow::new::<permission::ListPermissions>(),
    MethodRow::new::<permission::AnswerPermission>(),
    MethodRow::new::<rules::ListRules>(),
    MethodRow::new::<rules::RemoveRule>(),
    MethodRow::new::<settings::GetSettings>(),
    MethodRow::new::<settings::SetDefaultModel>(),
    MethodRow::new::<settings::AddServer>(),
    MethodRow::new::<settings::RemoveServer>(),
    MethodRow::new::<settings::AddRule>(),
    MethodRow::new::<settings::RemoveUserRule>(),
    MethodRow::new::<command_list::ListCommands>(),
    MethodRow::new::<file_search::SearchFiles>(),
    MethodRow::new::<file_read::ReadFile>(),
    MethodRow::new::<resource_list::ListResources>(),
    MethodRow::new::<status::ListTools>(),
    MethodRow::new::<status::ListAgents>(),
    MethodRow::new::<agent_processes::StopAgents>(),
    MethodRow::new::<models::ListModels>(),
    MethodRow::new::<status::GetStatus>(),
    MethodRow::new::<attachment::AddAttachment>(),
    MethodRow::new::<attachment::GetAttachment>(),
    MethodRow::new::<attachment::ListAttachments>(),
    MethodRow::new::<artifact::ListArtifacts>(),
    MethodRow::new::<artifact::GetArtifact>(),
    MethodRow::new::<workspaces::CreateWorkspace>(),
    MethodRow::new::<workspaces::ListWorkspaces>(),
    MethodRow::new::<workspaces::GetWorkspace>(),
    MethodRow::new::<workspaces::SetWorkspaceMetadata>(),
    MethodRow::new::<apply::ApplyWorkspace>(),
    MethodRow::new::<workspaces::DeleteWorkspace>(),
    MethodRow::new::<comparison::StartComparison>(),
    MethodRow::new::<events::FollowEvents>(),
];

pub(crate) fn method(name: &str) -> Option<&'static MethodRow> {
    METHODS.iter().find(|row| row.name == name)
}
