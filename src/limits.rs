//! The limits that several files use: queues, sizes, times and counts. A limit with one user is in
//! the file of its user. A name ends in its unit, then `_MAX`.

use std::time::Duration;

/// Returns a bound on work whose result can be omitted. The bound is longer in debug builds,
/// because they are slower.
const fn patience(millis: u64) -> Duration {
    Duration::from_millis(if cfg!(debug_assertions) { 10 * millis } else { millis })
}

/// Maximum size of a JSON-RPC message, in bytes: one line on stdio, one WebSocket message on
/// `/rpc`.
pub(crate) const FRAME_BYTES_MAX: usize = 32 << 20;
/// How many bytes of a line that is too long are searched for the id of its message.
pub const LINE_START_BYTES: usize = 4 << 10;
/// How long a client may stop reading before its connection is considered dead.
pub(crate) const STALLED: Duration = Duration::from_secs(60);
/// Maximum number of replies in the outgoing queue of a stdio connection.
pub(crate) const REPLIES_QUEUED_MAX: usize = 1024;
/// Maximum number of events that a cursor reads at a time. Limits how long a reply waits behind
/// other events.
pub(crate) const PAGE_EVENTS: usize = 256;

/// Maximum number of events that the log writer commits in one transaction.
pub(crate) const BATCH_EVENTS_MAX: usize = 512;
/// Maximum size of a message between two nuncio processes, in bytes: a message of a client
/// ([`FRAME_BYTES_MAX`]) and the description of that client.
pub(crate) const PEER_MESSAGE_BYTES_MAX: usize = FRAME_BYTES_MAX + (1 << 20);
/// How long another process may take to send or to answer the first request of a connection.
pub(crate) const PEER_HELLO: Duration = Duration::from_secs(5);
/// How long a call searches for a process that accepts it, while the owner of its session ends. The
/// time during which the call waits in an owner does not count. Longer than [`DRAIN`], within which
/// a process releases its sessions.
pub(crate) const FORWARD_SEARCH: Duration = Duration::from_secs(10);
/// How long a call whose owner was another node waits until the session is taken over. Longer than
/// the lease of that node.
pub(crate) const NODE_TAKEOVER: Duration = Duration::from_secs(25);
/// Pause between two attempts to find the owner of a session.
pub(crate) const FORWARD_PAUSE: Duration = Duration::from_millis(5);
/// How long the owner of a session may take to end a cancelled turn. Also the interval at which a
/// process that runs a forwarded call is asked whether it responds.
pub(crate) const FORWARD_ANSWER: Duration = Duration::from_secs(30);
/// How long a permission request waits for a client that can answer it, after the session was
/// taken: clients of other processes attend it again within this time.
pub(crate) const RESPONDER_WAIT: Duration = Duration::from_millis(250);
/// How long the store may take to answer before a server is not ready.
pub(crate) const READY: Duration = Duration::from_secs(2);
/// How long the calls of other processes may take to be answered when the process ends.
pub(crate) const PEER_DRAIN: Duration = Duration::from_secs(1);
/// How long SQLite waits for another process's transaction (busy timeout).
pub const STORE_BUSY: Duration = Duration::from_secs(5);

/// How long a write is retried while the store is locked or cannot be reached. After that, the
/// events are lost.
pub const STORE_LOCKED_MAX: Duration = Duration::from_secs(15);

/// How long artifacts are kept after the last event of their session.
pub const ARTIFACTS_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// Maximum total size of a closed session's artifacts, in bytes. The oldest artifacts in excess are
/// removed.
pub const ARTIFACTS_BYTES_MAX: u64 = 256 << 20;

/// Maximum number of queued messages per session. Further messages fail with `overloaded`.
pub(crate) const QUEUED_MESSAGES_MAX: usize = 64;
/// Maximum number of waiting prompts per session. Further prompts fail with `session_busy`.
pub(crate) const PROMPTS_WAITING_MAX: usize = 16;
/// Default of `retry.wait_s`: how long a request waits for an overloaded provider.
pub(crate) const MODEL_WAIT: Duration = Duration::from_secs(120);
/// How long a request waits for an overloaded provider if another model can answer.
pub(crate) const MODEL_FALLBACK_WAIT: Duration = Duration::from_secs(5);
/// Maximum size of a server-sent event in a model's stream, in bytes.
pub(crate) const MODEL_EVENT_BYTES_MAX: usize = 16 << 20;
/// Maximum number of bytes that are read from a model's error response.
pub(crate) const MODEL_ERROR_BYTES_MAX: usize = 64 << 10;
/// Maximum length of a model's error message as shown to users, in characters.
pub(crate) const MODEL_ERROR_CHARS_MAX: usize = 1000;
/// Maximum total size of the text, thinking, arguments and provider state in one model answer, in
/// bytes.
pub const MODEL_ANSWER_BYTES_MAX: usize = 8 << 20;
/// Maximum size of a scripted model's file, in bytes.
pub const SCRIPT_BYTES_MAX: u64 = 16 << 20;
/// Total time for the search for local model servers.
pub(crate) const MODEL_PROBE: Duration = patience(300);

/// Time between SIGTERM and SIGKILL when a command's processes are terminated.
pub(crate) const KILL_GRACE: Duration = Duration::from_millis(200);
/// How long to wait for killed processes to disappear.
pub(crate) const KILL_WAIT: Duration = Duration::from_secs(2);
/// How long a caller waits for a command to exit after requesting its termination.
pub(crate) const END_WAIT: Duration = Duration::from_secs(4);
/// Maximum size of a request to the fork server (a command with its environment), in bytes.
pub(crate) const ORDER_BYTES_MAX: usize = 128 << 10;
/// Maximum timeout of a foreground shell command, in milliseconds.
pub(crate) const BASH_TIMEOUT_MS_MAX: u64 = 600_000;
/// Maximum total size of the exported variables (names and values) that a session keeps for its
/// next command, in bytes.
pub(crate) const SHELL_EXPORTED_BYTES_MAX: usize = 32 << 10;
/// Maximum number of parent sessions of a subagent, including those of the processes that started
/// nuncio.
pub(crate) const SUBAGENT_DEPTH_MAX: u32 = 3;
/// Maximum number of concurrent subagents per process.
pub(crate) const SUBAGENTS_MAX: usize = 64;
/// Interval at which a running subagent is shown in its parent's tool call.
pub(crate) const SUBAGENT_UPDATE: Duration = Duration::from_millis(250);
/// Maximum size of a subagent's answer that its parent receives, in bytes.
pub(crate) const SUBAGENT_ANSWER_BYTES_MAX: usize = 32 << 10;
/// Maximum number of tasks that run concurrently for a client of `nuncio mcp serve`.
pub(crate) const DELEGATIONS_MAX: usize = 16;
/// Maximum time of a call to nuncio's MCP server.
pub(crate) const MCP_SERVED_CALL_MAX: Duration = Duration::from_secs(3600);
/// Maximum number of child sessions that the view of a session lists.
pub(crate) const CHILDREN_LISTED_MAX: usize = 200;
/// Maximum length of a command in the title of its tool call, in characters.
pub(crate) const BASH_TITLE_CHARS_MAX: usize = 200;
/// Maximum length of a command that permission rules analyse, in bytes. A command that exceeds any
/// limit of the analysis counts as unreadable.
pub(crate) const SHELL_BYTES_MAX: usize = 64 << 10;
/// Maximum total length of the names under which the analysed commands are matched, in characters.
pub(crate) const SHELL_NAMES_CHARS_MAX: usize = 16 * SHELL_BYTES_MAX;
/// Maximum size of the command output (head and tail) that the model sees, in bytes.
pub(crate) const BASH_MODEL_BYTES_MAX: usize = 50 << 10;
/// Maximum size of the command output that is saved to a file, in bytes.
pub(crate) const BASH_OUTPUT_BYTES_MAX: usize = 16 << 20;
/// Number of bytes that are read from a pipe at a time: the default capacity of a pipe.
pub(crate) const PIPE_BYTES: usize = 64 << 10;
/// Interval at which the new output of a running command is shown.
pub(crate) const BASH_UPDATE: Duration = Duration::from_millis(100);
/// Maximum size of the output tail that is shown while a command runs, in bytes.
pub(crate) const BASH_LIVE_BYTES_MAX: usize = 8 << 10;

/// Default time limit of one check command (`verify.timeout_s`).
pub(crate) const VERIFY_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum number of check commands of one call of `verify`.
pub(crate) const VERIFY_COMMANDS_MAX: usize = 20;
/// Number of changed files that an error about an unclean working tree names.
pub(crate) const DIRTY_FILES_SHOWN: usize = 5;

/// Timeout of a read-only git command.
pub(crate) const GIT_READ: Duration = Duration::from_secs(30);
/// Timeout of a git command that changes the repository, including hooks.
pub(crate) const GIT_CHANGE: Duration = Duration::from_secs(120);
/// Timeout of one git command that undoes a failed change.
pub(crate) const GIT_UNDO: Duration = Duration::from_secs(10);
/// Maximum number of git worktrees that are listed.
pub(crate) const WORKTREES_MAX: usize = 1_000;
/// Maximum number of paths of each kind, and of commits, in the state of a git worktree.
pub(crate) const WORKTREE_PATHS_SHOWN_MAX: usize = 100;
/// Maximum number of processes, and of sessions, in the state of a git worktree.
pub(crate) const WORKTREE_PROCESSES_MAX: usize = 100;
/// Maximum total length of the paths on one git command line, in bytes.
pub(crate) const GIT_PATHS_BYTES_MAX: usize = 64 << 10;
/// Maximum size of the output of one git command, in bytes.
pub(crate) const GIT_OUTPUT_BYTES_MAX: usize = 4 << 20;
/// Maximum size of git's error output that is reported on failure, in bytes.
pub(crate) const GIT_ERROR_BYTES_MAX: usize = 4 << 10;
/// Maximum number of files or branches in the result of a git tool.
pub(crate) const GIT_ENTRIES_MAX: usize = 500;

/// Maximum number of bytes that are fetched from a page.
pub(crate) const FETCH_BYTES_MAX: usize = 5 << 20;

/// Maximum nesting depth of subgraphs, or of record fields, in a diagram.
pub(crate) const DIAGRAM_DEPTH_MAX: usize = 20;

/// Estimated number of bytes per token.
pub(crate) const BYTES_PER_TOKEN: usize = 4;

/// Maximum size of a text that is attached or shown whole, in bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 20;
/// Number of bytes at the start of a file that are searched for a NUL byte, which marks the file as
/// binary.
pub(crate) const BINARY_PROBE_BYTES: usize = 8 << 10;
/// Maximum size of an image that a model receives, in bytes.
pub(crate) const IMAGE_BYTES_MAX: usize = 5 << 20;
/// Maximum number of steps for comparing blocks in `edit`. A step is a line or 64 pairs of bytes.
pub(crate) const EDIT_COMPARE_STEPS_MAX: usize = 16 << 20;
/// Maximum number of candidate blocks that `edit` distinguishes.
pub(crate) const EDIT_PLACES_MAX: usize = 1_000;
/// Maximum size of the text on one side of a diff, in bytes. Larger files are shown without their
/// text.
pub(crate) const DIFF_TEXT_BYTES_MAX: usize = 256 << 10;
/// Time limit for computing a minimal diff. After that, a coarser diff is used.
pub(crate) const DIFF_TIME: Duration = Duration::from_millis(100);
/// Maximum number of lines that `grep` shows.
pub(crate) const GREP_LINES_MAX: usize = 250;

/// Timeout for the initialization of an MCP server, with the lists of its tools and prompts.
pub(crate) const MCP_START: Duration = Duration::from_secs(60);
/// How long a call waits for an MCP server that is starting or restarting.
pub(crate) const MCP_CALL_START: Duration = Duration::from_secs(30);
/// Timeout for the end of an MCP server after its input is closed. Then its processes are killed.
pub(crate) const MCP_SHUTDOWN_GRACE: Duration = Duration::from_millis(500);
/// Maximum size of a message of an MCP server, in bytes. Larger messages are dropped.
pub(crate) const MCP_MESSAGE_BYTES_MAX: usize = 32 << 20;
/// Maximum length of a line of an MCP server's stderr that is logged, in bytes.
pub(crate) const MCP_LOG_LINE_BYTES_MAX: usize = 1_000;

/// Maximum size of an image in the result of an MCP tool, in base64 characters. Larger images are
/// stored as artifacts.
pub(crate) const MCP_IMAGE_CHARS_MAX: usize = 5 << 20;
/// Maximum size of the texts in the result of an MCP call, in bytes. Further texts are stored as
/// artifacts.
pub(crate) const MCP_RESULT_TEXT_BYTES_MAX: usize = 2 * BASH_MODEL_BYTES_MAX;
/// Maximum size of the images in the result of an MCP call, in base64 characters. Further images
/// are stored as artifacts.
pub(crate) const MCP_RESULT_IMAGE_CHARS_MAX: usize = 2 * MCP_IMAGE_CHARS_MAX;
/// Maximum number of parts of the result of an MCP call, of which further parts are left out, and
/// of the parts that MCP servers add to a message.
pub(crate) const MCP_RESULT_PARTS_MAX: usize = 100;
/// Maximum size of an address, a name or a description in the result of an MCP call, in bytes.
pub(crate) const MCP_FIELD_BYTES_MAX: usize = 2_000;
/// Maximum number of new and of removed tools of an MCP server that a notice names.
pub(crate) const MCP_NAMES_SHOWN: usize = 50;
/// Maximum number of characters of the arguments in the title of an MCP call.
pub(crate) const MCP_TITLE_CHARS_MAX: usize = 80;
/// Maximum number of requests of MCP servers that wait during a tool call, and of requests to the
/// model in one call.
pub(crate) const MCP_REQUESTS_MAX: usize = 16;

/// Maximum number of concurrent language servers.
pub const LSP_SERVERS_MAX: usize = 8;
/// Maximum size of the header of a language server's message, in bytes.
pub const LSP_HEADER_BYTES_MAX: usize = 4 << 10;
/// Maximum size of the body of a language server's message, in bytes.
pub const LSP_MESSAGE_BYTES_MAX: usize = 16 << 20;

/// How long opening a session waits for another session to become unused if the maximum number of
/// sessions is open.
pub(crate) const CAPACITY_WAIT: Duration = patience(100);
/// Pause after a connection could not be accepted, for example because no file descriptor is free.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// Maximum size of a request body, in bytes: large enough for an attachment in base64.
pub(crate) const HTTP_BODY_BYTES_MAX: usize = 16 << 20;
/// Maximum size of a request body that does not count towards [`HTTP_BODIES_BYTES_MAX`], in bytes.
pub(crate) const HTTP_BODY_BYTES_SMALL: u64 = 16 << 10;
/// Maximum total size of the request bodies that are received concurrently, in bytes.
pub(crate) const HTTP_BODIES_BYTES_MAX: usize = 64 << 20;
/// Maximum number of outgoing messages that one `/rpc` connection buffers.
pub(crate) const RPC_MESSAGES_QUEUED_MAX: usize = 8;
/// Maximum number of calls per socket (WebSocket connection to `/rpc`) that are running or whose
/// responses are not sent yet.
pub(crate) const RPC_CALLS_MAX: usize = 32;
/// Maximum number of messages that are handled concurrently per socket. Further messages are not
/// read.
pub(crate) const RPC_MESSAGES_MAX: usize = 2 * RPC_CALLS_MAX + RPC_MESSAGES_QUEUED_MAX;
/// Maximum total size of the params of the running calls on one socket, in bytes.
pub(crate) const RPC_PARAMS_BYTES_MAX: usize = 2 * HTTP_BODY_BYTES_MAX;
/// Interval between heartbeats on an idle stream.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);

/// How long a trace collector may take to accept spans.
pub const TRACES_SENT: Duration = Duration::from_secs(2);

/// Maximum size of a file that nuncio reads for its own use, in bytes: settings, prompts, ignore
/// files, files in a repository's `.git`.
pub(crate) const OWN_FILE_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of concurrent directory searches per process. Further searches wait.
pub(crate) const WALKS_MAX: usize = 8;
/// Maximum number of rules in the ignore files of a directory and its ancestors. Further rules are
/// skipped.
pub const IGNORE_RULES_MAX: usize = 20_000;
/// Maximum number of threads per directory search.
pub(crate) const WALK_THREADS_MAX: usize = 12;
/// Maximum number of files and directories that a search by path visits.
pub(crate) const SEARCHED_FILES_MAX: usize = 100_000;
/// Maximum size of one instruction file, in bytes.
pub(crate) const INSTRUCTION_BYTES_MAX: usize = 32 << 10;
/// Maximum time to read a document, also of the processor.
pub(crate) const READER_TIME_MAX: Duration = Duration::from_secs(10);
/// Maximum memory of a process that reads a document, with its stack, in bytes.
pub(crate) const READER_BYTES_MAX: u64 = 256 << 20;
/// Maximum number of documents that are read concurrently per process. Further ones wait.
pub(crate) const READERS_MAX: usize = 4;
/// Maximum size of the extracted text of a document, in bytes.
pub(crate) const DOCUMENT_TEXT_BYTES_MAX: usize = 256 << 10;
/// Maximum size of the smaller copy of an image, in bytes: in base64, less than 4 MB.
pub(crate) const IMAGE_COPY_BYTES_MAX: usize = 2_900_000;
/// Maximum number of empty columns, and of spaces, that an office document repeats in the text.
pub(crate) const DOCUMENT_COLUMNS_MAX: usize = 100;
/// Maximum number of files of slash commands, and of skills.
pub(crate) const PROMPT_FILES_MAX: usize = 200;
/// Maximum length of the description of a skill or a slash command, in characters.
pub(crate) const SKILL_DESCRIPTION_CHARS_MAX: usize = 500;
/// How long the first request of a session may wait for the description. It has what was found by
/// then.
pub(crate) const BUNDLE_TIME: Duration = patience(300);
/// Default timeout of a hook.
pub(crate) const HOOK: Duration = Duration::from_secs(5);
/// Maximum size of the error output of a hook that is read, in bytes. The rest is discarded.
pub(crate) const HOOK_ERROR_BYTES_MAX: usize = 4 << 10;

/// How long running turns may take to end after the end of input or a signal.
pub(crate) const DRAIN: Duration = Duration::from_secs(3);
/// Maximum number of sessions on one `session/list` page.
pub(crate) const SESSIONS_PAGE: usize = 50;
/// Maximum size of an attachment's content, in bytes.
pub(crate) const ATTACHMENT_BYTES_MAX: usize = 10 << 20;
/// Maximum total size of the attachments that one message embeds, in bytes.
pub(crate) const MESSAGE_ATTACHMENTS_BYTES_MAX: usize = 20 << 20;
/// Maximum size of a search for sessions, in bytes.
pub(crate) const SEARCH_BYTES_MAX: usize = 200;
/// Time after which one `session/list` call searches no further session. The next call continues.
pub(crate) const SESSIONS_SEARCH: Duration = Duration::from_secs(1);
/// Maximum number of pages of [`SESSIONS_PAGE`] sessions that are searched for sessions visible to
/// a client.
pub(crate) const SESSIONS_PAGES_MAX: usize = 40;
/// Maximum length of a title derived from the first prompt, in characters.
pub(crate) const TITLE_CHARS_MAX: usize = 80;
/// Maximum size of a JSON Lines record in the input of `run --json -` and `sessions import`, and of
/// a prompt on standard input, in bytes.
pub(crate) const INPUT_LINE_BYTES_MAX: usize = FRAME_BYTES_MAX;
/// Maximum size of an `api_key_command`'s output, in bytes.
pub(crate) const KEY_BYTES_MAX: usize = 16 << 10;

/// Maximum time until a hosted agent that was started answers its first requests.
pub(crate) const AGENT_START: Duration = Duration::from_secs(60);
/// Maximum time until a hosted agent answers a request that is not a prompt.
pub(crate) const AGENT_REQUEST: Duration = Duration::from_secs(30);
/// Time until a hosted agent must have ended a cancelled turn. Then its process is ended.
pub(crate) const AGENT_CANCEL: Duration = Duration::from_secs(5);
/// Maximum number of messages of a hosted agent that wait for the turn.
pub(crate) const AGENT_MESSAGES_QUEUED_MAX: usize = 256;
/// Maximum size of the output of a hosted agent's tool call that is recorded, in bytes.
pub(crate) const AGENT_OUTPUT_BYTES_MAX: usize = 256 << 10;
/// Size at which a message of a hosted agent is recorded, in bytes. Its rest is another message.
pub(crate) const AGENT_MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Maximum size of the events of one turn of a hosted agent, in bytes. Its text and thoughts are
/// limited by [`MODEL_ANSWER_BYTES_MAX`], as is the content of its calls before their results.
pub(crate) const AGENT_TURN_BYTES_MAX: usize = 64 << 20;
/// Maximum number of options, commands, plan entries and parts of a call of a hosted agent.
pub(crate) const AGENT_ITEMS_MAX: usize = 500;
/// Time to wait for an explanation on the standard error of an agent that answered nothing.
pub(crate) const AGENT_STDERR: Duration = Duration::from_secs(1);
/// The delay before a closed event stream of an agent is opened again.
pub(crate) const AGENT_RECONNECT: Duration = Duration::from_millis(100);
