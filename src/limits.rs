//! Every limit in one place: queues, sizes, times and counts. A name ends in its unit, then `_MAX`.

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
/// Maximum number of concurrent requests per connection. Further requests fail with `overloaded`.
pub(crate) const REQUESTS_RUNNING_MAX: usize = 1024;
/// How long a client may stop reading before its connection is considered dead.
pub(crate) const STALLED: Duration = Duration::from_secs(60);
/// Maximum number of replies in the outgoing queue of a stdio connection.
pub(crate) const REPLIES_QUEUED_MAX: usize = 1024;
/// Maximum number of events that a cursor reads at a time. Limits how long a reply waits behind
/// other events.
pub(crate) const PAGE_EVENTS: usize = 256;
/// Maximum size of a page of events, in bytes. A page ends with the event that exceeds the limit.
pub(crate) const PAGE_BYTES_MAX: usize = 4 << 20;

/// Maximum number of events in the log writer's queue, over all sessions.
pub(crate) const APPENDS_QUEUED_MAX: usize = 4096;
/// Maximum number of events that the log writer commits in one transaction.
pub(crate) const BATCH_EVENTS_MAX: usize = 512;
/// Maximum number of recent events per session that are kept in memory for the session's followers.
pub(crate) const TAIL_EVENTS_MAX: usize = 512;
/// Maximum total size of the text in those recent events ([`TAIL_EVENTS_MAX`]), in bytes.
pub(crate) const TAIL_BYTES_MAX: usize = 256 << 10;
/// Interval at which a followed session is polled for events that another process wrote.
pub(crate) const EXTERNAL_POLL: Duration = Duration::from_millis(50);
/// Number of polls ([`EXTERNAL_POLL`]) between two checks that the owner of a running turn is
/// alive.
pub(crate) const EXTERNAL_ORPHANS: u64 = 20;
/// Maximum size of a message between two nuncio processes, in bytes: a message of a client
/// ([`FRAME_BYTES_MAX`]) and the description of that client.
pub(crate) const PEER_MESSAGE_BYTES_MAX: usize = FRAME_BYTES_MAX + (1 << 20);
/// Maximum number of notifications about one forwarded call that wait to be handled.
pub(crate) const PEER_NOTIFICATIONS_MAX: usize = 8;
/// How long a late answer to a permission request waits for the first answer to be recorded.
pub(crate) const PERMISSION_RESOLVED: Duration = Duration::from_secs(1);
/// Number of resolved permission requests per session whose outcome a late answer receives.
pub(crate) const PERMISSIONS_RESOLVED_KEPT: usize = 16;
/// Maximum number of processes that are connected to one process.
pub(crate) const PEERS_MAX: usize = 256;
/// How long another process may take to send or to answer the first request of a connection.
pub(crate) const PEER_HELLO: Duration = Duration::from_secs(5);
/// How long a call searches for a process that accepts it, while the owner of its session ends. The
/// time during which the call waits in an owner does not count. Longer than [`DRAIN`], within which
/// a process releases its sessions.
pub(crate) const FORWARD_SEARCH: Duration = Duration::from_secs(10);
/// How long the next turn of a session waits, after the end of the previous turn, until the
/// response to its prompt is written.
pub(crate) const ANSWER_WRITTEN: Duration = Duration::from_secs(2);
/// How long the owner of a session may take to register a client that answers permission requests.
pub(crate) const REGISTRATION: Duration = Duration::from_secs(2);
/// Pause between two attempts to find the owner of a session.
pub(crate) const FORWARD_PAUSE: Duration = Duration::from_millis(5);
/// How long the owner of a session may take to end a cancelled turn. Also the interval at which a
/// process that runs a forwarded call is asked whether it responds.
pub(crate) const FORWARD_ANSWER: Duration = Duration::from_secs(30);
/// How long the owner of an idle session may take to end its agent and to release it.
pub(crate) const FORWARD_RELEASE: Duration = Duration::from_secs(5);
/// How long a permission request waits for a client that can answer it, after the session was
/// taken: clients of other processes attend it again within this time.
pub(crate) const RESPONDER_WAIT: Duration = Duration::from_millis(250);
/// How long the calls of other processes may take to be answered when the process ends.
pub(crate) const PEER_DRAIN: Duration = Duration::from_secs(1);
/// How long SQLite waits for another process's transaction (busy timeout).
pub const STORE_BUSY: Duration = Duration::from_secs(5);

/// How long a write is retried while another process locks the store. After that, the events are
/// lost.
pub const STORE_LOCKED_MAX: Duration = Duration::from_secs(15);
/// Pause between two attempts to write to a locked store.
pub(crate) const STORE_RETRY: Duration = Duration::from_millis(50);
/// Pause between two attempts to resume a session after its events were lost.
pub(crate) const STORE_RECOVERY: Duration = Duration::from_millis(500);

/// How long artifacts are kept after the last event of their session.
pub const ARTIFACTS_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// Maximum total size of a closed session's artifacts, in bytes. The oldest artifacts in excess are
/// removed.
pub const ARTIFACTS_BYTES_MAX: u64 = 256 << 20;

/// Maximum number of directories whose slash commands are kept in memory.
pub(crate) const COMMAND_LISTS_MAX: usize = 16;

/// Maximum number of commands that the error about an unknown command names.
pub(crate) const COMMANDS_NAMED_MAX: usize = 20;

/// Default of the setting `budget.max_requests`: model requests per turn.
pub(crate) const TURN_REQUESTS_MAX: u64 = 200;
/// A compaction must replace at least one of this number of the conversation's parts.
pub(crate) const COMPACTION_SHARE_MIN: usize = 4;
/// The part of the context window that is left free for the summary: one of this number. A
/// conversation at the default threshold must fit into the rest, so that the request for its
/// summary is read from the provider's cache.
pub(crate) const COMPACTION_RESERVE_SHARE: u64 = 10;
/// Maximum number of requests for one summary.
pub(crate) const COMPACTION_REQUESTS_MAX: u32 = 3;
/// The pause before the second of these requests; it doubles with each further one.
pub(crate) const COMPACTION_PAUSE: Duration = Duration::from_millis(250);
/// The context window counts as full if one of this number of its parts is left.
pub(crate) const WINDOW_FULL_SHARE: u64 = 20;
/// The excerpt that replaces a failed summary has one of this number of parts of the conversation's
/// room.
pub(crate) const EXCERPT_SHARE: usize = 4;
/// Number of incomplete or empty answers to these requests after which a compaction fails.
pub(crate) const UNUSABLE_SUMMARIES_MAX: u32 = 2;
/// Maximum length of a summary; the rest is cut off.
pub(crate) const SUMMARY_BYTES_MAX: usize = 64 << 10;
/// Tool calls of one answer that take longer than this are no repetition: they may wait for
/// something.
pub(crate) const REPEATED_ROUND_TIME: Duration = Duration::from_secs(10);
/// Number of repetitions of tool calls with the same results after which the model receives a note.
pub(crate) const REPEATED_ROUNDS_NOTE: usize = 3;
/// Number of repetitions of tool calls with the same results at which the turn stops.
pub(crate) const REPEATED_ROUNDS_MAX: usize = 5;
/// Maximum number of answers in a repeated cycle of tool calls.
pub(crate) const REPEATED_ROUNDS_CYCLE_MAX: usize = 3;
/// Number of bytes between two searches for repeated text in an answer.
pub(crate) const REPEATED_TEXT_STEP_BYTES: usize = 2 << 10;
/// Number of bytes at the end of an answer that must be periodic for text to count as repeated.
pub(crate) const REPEATED_TEXT_SCAN_BYTES: usize = 4 << 10;
/// Maximum length of a repeated piece of text, in bytes.
pub(crate) const REPEATED_TEXT_PERIOD_MAX: usize = 2000;
/// Minimum size and number of repetitions of prose at which an answer is cut.
pub(crate) const REPEATED_PROSE_BYTES: usize = 8 << 10;
/// See [`REPEATED_PROSE_BYTES`].
pub(crate) const REPEATED_PROSE_TIMES: usize = 8;
/// Minimum size and number of repetitions of other text, such as data, at which an answer is cut.
pub(crate) const REPEATED_TEXT_BYTES: usize = 16 << 10;
/// See [`REPEATED_TEXT_BYTES`].
pub(crate) const REPEATED_TEXT_TIMES: usize = 256;
/// Maximum number of queued messages per session. Further messages fail with `overloaded`.
pub(crate) const QUEUED_MESSAGES_MAX: usize = 64;
/// Maximum number of waiting prompts per session. Further prompts fail with `session_busy`.
pub(crate) const PROMPTS_WAITING_MAX: usize = 16;
/// How long a fact about a model server that an error revealed is used, in milliseconds: the server
/// can be changed.
pub(crate) const OBSERVATION_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// Maximum number of models and servers with such facts.
pub(crate) const OBSERVATIONS_MAX: usize = 500;
/// Maximum number of attempts per model request.
pub(crate) const MODEL_ATTEMPTS_MAX: u32 = 8;
/// Maximum number of attempts per model request if a local address refuses the connection and has
/// not answered before.
pub(crate) const MODEL_LOCAL_ATTEMPTS_MAX: u32 = 3;
/// Pause after the first failed attempt at a model request. The pause doubles with each attempt.
pub(crate) const MODEL_BACKOFF: Duration = Duration::from_millis(100);
/// Maximum pause between two attempts.
pub(crate) const MODEL_BACKOFF_MAX: Duration = Duration::from_secs(60);
/// Default of `retry.wait_s`: how long a request waits for an overloaded provider.
pub(crate) const MODEL_WAIT: Duration = Duration::from_secs(120);
/// Minimum length of a key that messages mask. Shorter values are not secret, and occur in ordinary
/// words: the key of a server on this machine is often `none` or `x`.
pub(crate) const MASKED_BYTES_MIN: usize = 8;
/// How long a request waits for an overloaded provider if another model can answer.
pub(crate) const MODEL_FALLBACK_WAIT: Duration = Duration::from_secs(5);
/// Maximum pause between two attempts while the provider is overloaded or loads the model, unless
/// it requests a longer one.
pub(crate) const MODEL_WAIT_PAUSE_MAX: Duration = Duration::from_secs(10);
/// How long a request waits for a server on this machine that refuses connections and has answered
/// before: the time of a restart.
pub(crate) const MODEL_RESTART: Duration = Duration::from_secs(15);
/// Maximum pause between two attempts at a server on this machine that refuses connections.
pub(crate) const MODEL_LOCAL_PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long a model's stream may be silent before it counts as interrupted.
pub(crate) const MODEL_IDLE: Duration = Duration::from_secs(180);
/// [`MODEL_IDLE`] for a server on this machine, which may process a long prompt first.
pub(crate) const MODEL_LOCAL_IDLE: Duration = Duration::from_secs(900);
/// Maximum random time that is added to a pause, so that concurrent failures are not retried at the
/// same time.
pub(crate) const MODEL_JITTER: Duration = Duration::from_millis(20);
/// How long an idle connection to a model's host stays open.
pub(crate) const MODEL_KEEP_ALIVE: Duration = Duration::from_secs(90);
/// Timeout for connecting to a model's host.
pub(crate) const MODEL_CONNECT: Duration = Duration::from_secs(15);
/// [`MODEL_CONNECT`] for a server on this machine.
pub(crate) const MODEL_LOCAL_CONNECT: Duration = Duration::from_secs(5);
/// Maximum size of a server-sent event in a model's stream, in bytes.
pub(crate) const MODEL_EVENT_BYTES_MAX: usize = 16 << 20;
/// Maximum number of bytes that are read from a model's error response.
pub(crate) const MODEL_ERROR_BYTES_MAX: usize = 64 << 10;
/// Maximum length of a model's error message as shown to users, in characters.
pub(crate) const MODEL_ERROR_CHARS_MAX: usize = 1000;
/// Maximum length of an excerpt from a response that is not an answer, in bytes.
pub(crate) const MODEL_EXCERPT_BYTES_MAX: usize = 200;
/// Maximum total size of the text, thinking, arguments and provider state in one model answer, in
/// bytes.
pub const MODEL_ANSWER_BYTES_MAX: usize = 8 << 20;
/// Default output limit of a server on this machine, in tokens, unless its context window is less
/// than twice as large.
pub(crate) const MODEL_LOCAL_OUTPUT_TOKENS_MAX: u32 = 16_384;
/// Maximum number of tool calls in one model answer.
pub(crate) const MODEL_ANSWER_CALLS_MAX: usize = 256;
/// Maximum number of text and thinking blocks in one model answer.
pub(crate) const MODEL_ANSWER_BLOCKS_MAX: usize = 1024;
/// Maximum number of bytes received for one model answer, including protocol overhead.
pub(crate) const MODEL_STREAM_BYTES_MAX: usize = 512 << 20;
/// How long the request for an access token of a cloud account may take.
pub(crate) const CLOUD_TOKEN: Duration = Duration::from_secs(15);
/// Maximum size of the answer with an access token, in bytes.
pub(crate) const CLOUD_TOKEN_BYTES_MAX: usize = 64 << 10;
/// How long before its expiry an access token is replaced.
pub(crate) const CLOUD_TOKEN_EARLY: Duration = Duration::from_secs(240);
/// Maximum size of a scripted model's file, in bytes.
pub const SCRIPT_BYTES_MAX: u64 = 16 << 20;
/// Total time for the search for local model servers.
pub(crate) const MODEL_PROBE: Duration = patience(300);
/// Maximum size of the response that identifies a local model server, in bytes.
pub(crate) const MODEL_PROBE_BYTES_MAX: usize = 1 << 20;
/// How long a request waits for the properties that a local server reports of its model.
pub(crate) const LOCAL_PROPERTIES: Duration = Duration::from_secs(1);
/// How long the properties that a local server reported apply to later turns.
pub(crate) const LOCAL_PROPERTIES_FRESH: Duration = Duration::from_secs(60);
/// Maximum number of models on local servers whose properties are kept.
pub(crate) const LOCAL_MODELS_MAX: usize = 256;

/// Time between SIGTERM and SIGKILL when a command's processes are terminated.
pub(crate) const KILL_GRACE: Duration = Duration::from_millis(200);
/// Interval at which the remaining processes are listed again while a command is terminated.
pub(crate) const KILL_AGAIN: Duration = Duration::from_millis(10);
/// How long to wait for killed processes to disappear.
pub(crate) const KILL_WAIT: Duration = Duration::from_secs(2);
/// Interval at which a killed orphan is polled until it can be reaped.
pub(crate) const REAP_AGAIN: Duration = Duration::from_millis(1);
/// How long processes that a command left running, such as a `tee` that still writes, may take to
/// exit by themselves. After that, they are terminated.
pub(crate) const LEFTOVER_GRACE: Duration = Duration::from_millis(50);
/// Maximum number of open files per process of a command (soft `RLIMIT_NOFILE`): the usual system
/// default. nuncio's own limit is higher.
pub(crate) const CHILD_OPEN_FILES: u64 = 1024;
/// How long a supervisor may take to terminate its command on request. After that, the fork server
/// kills the supervisor and the command.
pub(crate) const SUPERVISOR_WAIT: Duration = Duration::from_secs(1);
/// How long a caller waits for a command to exit after requesting its termination.
pub(crate) const END_WAIT: Duration = Duration::from_secs(4);
/// How long the fork server may take to kill a supervisor's processes, or to exit.
pub(crate) const SWEEP_WAIT: Duration = Duration::from_secs(5);
/// Maximum size of a request to the fork server (a command with its environment), in bytes.
pub(crate) const ORDER_BYTES_MAX: usize = 128 << 10;
/// Maximum size of the state that a shell reports on exit (its environment twice, and a path), in
/// bytes.
pub(crate) const HELPER_REPORT_BYTES_MAX: u64 = 512 << 10;
/// Largest file that a sandboxed command may write, in bytes (`RLIMIT_FSIZE`).
pub(crate) const SANDBOX_FILE_BYTES_MAX: u64 = 16 << 30;
/// Maximum number of the user's processes while a sandboxed command runs (`RLIMIT_NPROC`).
pub(crate) const SANDBOX_PROCESSES_MAX: u64 = 16 << 10;
/// Maximum number of entries that a sandboxed command may access in each directory above nuncio's
/// private directories. Further entries are inaccessible.
pub(crate) const SANDBOX_ENTRIES_MAX: usize = 10_000;
/// Lowest `oom_score_adj` of a command (proc(5)), so that the kernel kills commands before nuncio.
pub(crate) const COMMAND_OOM_SCORE: i32 = 500;
/// Default timeout of a shell command, in milliseconds.
pub(crate) const BASH_TIMEOUT_MS: u64 = 120_000;
/// Maximum timeout of a foreground shell command, in milliseconds.
pub(crate) const BASH_TIMEOUT_MS_MAX: u64 = 600_000;
/// Maximum total size of the exported variables (names and values) that a session keeps for its
/// next command, in bytes.
pub(crate) const SHELL_EXPORTED_BYTES_MAX: usize = 32 << 10;
/// Maximum number of concurrent background jobs per session.
pub(crate) const JOBS_MAX: usize = 8;
/// Maximum number of sessions above the session of a subagent, including those of the processes
/// that started nuncio.
pub(crate) const SUBAGENT_DEPTH_MAX: u32 = 3;
/// Maximum number of concurrent subagents per session.
pub(crate) const SUBAGENTS_SESSION_MAX: usize = 16;
/// Maximum number of concurrent subagents per process.
pub(crate) const SUBAGENTS_MAX: usize = 64;
/// Maximum number of model requests per turn of a subagent.
pub(crate) const SUBAGENT_REQUESTS_MAX: u64 = 100;
/// Interval at which a running subagent is shown in its parent's tool call.
pub(crate) const SUBAGENT_UPDATE: Duration = Duration::from_millis(250);
/// Maximum size of a subagent's text that is shown while it runs, in bytes.
pub(crate) const SUBAGENT_LINE_BYTES_MAX: usize = 500;
/// Maximum size of a subagent's answer that its parent receives, in bytes.
pub(crate) const SUBAGENT_ANSWER_BYTES_MAX: usize = 32 << 10;
/// Maximum number of tasks that run concurrently for a client of `nuncio mcp serve`.
pub(crate) const DELEGATIONS_MAX: usize = 16;
/// Maximum size of the message of a permission request of `nuncio mcp serve`, in bytes.
pub(crate) const ELICITATION_BYTES_MAX: usize = 64 << 10;
/// Maximum number of sessions that a client of `nuncio mcp serve` can continue.
pub(crate) const DELEGATED_SESSIONS_MAX: usize = 1_000;
/// How long the first turn waits for a server whose first output is not a message of MCP.
pub(crate) const MCP_GARBAGE_WAIT: Duration = Duration::from_secs(1);
/// Number of bytes of output that is not a message which are shown.
pub(crate) const MCP_GARBAGE_BYTES_MAX: usize = 200;
/// Maximum number of times that a call of an MCP tool is repeated with input that its server asked
/// for.
pub(crate) const MCP_INPUT_ROUNDS_MAX: usize = 16;
/// Pause before a call is repeated for a server that asked for no input.
pub(crate) const MCP_INPUT_PAUSE: Duration = Duration::from_millis(250);
/// How long a call to nuncio's MCP server waits for the client's next request with an answer.
pub(crate) const MCP_SUSPENDED_MAX: Duration = Duration::from_secs(900);
/// Number of calls that ended while they waited for an answer and whose results are kept.
pub(crate) const MCP_SUSPENDED_KEPT: usize = 16;
/// Maximum time of a call to nuncio's MCP server.
pub(crate) const MCP_SERVED_CALL_MAX: Duration = Duration::from_secs(3600);
/// Maximum number of agent definitions for a session, and of files that are read in one directory.
pub(crate) const AGENT_DEFINITIONS_MAX: usize = 64;
/// Maximum length of the description of an agent in the tool's description, in characters.
pub(crate) const AGENT_DESCRIPTION_CHARS_MAX: usize = 300;
/// Maximum number of child sessions that the view of a session lists.
pub(crate) const CHILDREN_LISTED_MAX: usize = 200;
/// Maximum number of background jobs that a session remembers, including jobs that have ended.
pub(crate) const JOBS_KEPT_MAX: usize = 2 * JOBS_MAX;
/// Maximum size of a background job's latest output that is kept in memory, in bytes. The job's
/// output file has the rest.
pub(crate) const JOB_TAIL_BYTES_MAX: usize = 256 << 10;
/// Maximum length of a command in the title of its tool call, in characters.
pub(crate) const BASH_TITLE_CHARS_MAX: usize = 200;
/// Maximum length of a command that permission rules analyse, in bytes. A command that exceeds any
/// limit of the analysis counts as unreadable.
pub(crate) const SHELL_BYTES_MAX: usize = 64 << 10;
/// Maximum number of parser steps per shell command.
pub(crate) const SHELL_PARSE_STEPS_MAX: usize = 50_000;
/// Maximum number of simple commands that are analysed in one shell command.
pub(crate) const SHELL_COMMANDS_MAX: usize = 500;
/// Maximum nesting depth of the syntax of a shell command.
pub(crate) const SHELL_LEVELS_MAX: usize = 200;
/// Maximum number of nested shells in a shell command, as in `sh -c`.
pub(crate) const SHELL_DEPTH_MAX: usize = 8;
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
/// Default number of runs of the check commands in one turn (`verify.max_rounds`).
pub(crate) const VERIFY_ROUNDS: u32 = 3;
/// Maximum number of check commands of one call of `verify`.
pub(crate) const VERIFY_COMMANDS_MAX: usize = 20;
/// Maximum size of the failing part of one check command's output, in bytes.
pub(crate) const VERIFY_PART_BYTES_MAX: usize = 8 << 10;
/// Maximum size of all failing parts in one result of `verify`, in bytes.
pub(crate) const VERIFY_RESULT_BYTES_MAX: usize = 24 << 10;
/// Maximum size of one line of a failing part, in bytes.
pub(crate) const VERIFY_LINE_BYTES_MAX: usize = 400;
/// Number of changed files that an error about an unclean working tree names.
pub(crate) const DIRTY_FILES_SHOWN: usize = 5;
/// Maximum size of the former contents that are kept for the review of a turn's changes, in bytes.
/// Further files are not reviewed.
pub(crate) const REVIEW_BYTES_MAX: usize = 64 << 20;
/// Maximum size of the texts that a review shows, in bytes. Further files are only named.
pub(crate) const REVIEW_SHOWN_BYTES_MAX: usize = 4 << 20;
/// Maximum size of the diffs in the note to the model about a review, in bytes.
pub(crate) const REVIEW_NOTE_BYTES_MAX: usize = 4 << 10;
/// Maximum number of files in a review.
pub(crate) const REVIEW_FILES_MAX: usize = 500;
/// Maximum number of files whose state is compared to detect changes by commands. With more files,
/// every command counts as a change.
pub(crate) const CHANGE_SCAN_FILES_MAX: usize = 200_000;

/// How long a client may take to read or write a file.
pub(crate) const CLIENT_FILE: Duration = Duration::from_secs(5);
/// Largest file that is requested from a client, in bytes.
pub(crate) const CLIENT_FILE_BYTES_MAX: u64 = 8 << 20;
/// How long a client may take to start or end a terminal, or to return its output.
pub(crate) const CLIENT_TERMINAL: Duration = Duration::from_secs(10);
/// Maximum size of the output that a client's terminal keeps, in bytes.
pub(crate) const CLIENT_TERMINAL_BYTES_MAX: u64 = 4 << 20;

/// Timeout of a read-only git command.
pub(crate) const GIT_READ: Duration = Duration::from_secs(30);
/// Timeout of a git command that changes the repository, including hooks.
pub(crate) const GIT_CHANGE: Duration = Duration::from_secs(120);
/// Timeout of one git command that undoes a failed change.
pub(crate) const GIT_UNDO: Duration = Duration::from_secs(10);
/// Timeout of creating a git worktree, including the hooks of the repository.
pub(crate) const WORKTREE_CREATE: Duration = Duration::from_secs(600);
/// Timeout of one setup command of a new git worktree.
pub(crate) const WORKTREE_SETUP: Duration = Duration::from_secs(600);
/// How often a failed list of git's worktrees is repeated, and the pause before each repetition.
pub(crate) const WORKTREE_LIST_RETRIES: usize = 5;
pub(crate) const WORKTREE_LIST_PAUSE: Duration = Duration::from_millis(20);
/// Maximum length of the name of a git worktree, in characters.
pub(crate) const WORKTREE_NAME_CHARS_MAX: usize = 64;
/// Maximum length of the name of a git worktree that is made of an agent and a title. Some agents
/// have long names, and a number can follow.
pub(crate) const WORKTREE_WORDS_CHARS_MAX: usize = 48;
/// Maximum length of the title of a workspace that is made of a prompt, in characters.
pub(crate) const WORKTREE_TITLE_CHARS_MAX: usize = 72;
/// Maximum size of the metadata of a workspace, as JSON in bytes.
pub(crate) const WORKTREE_METADATA_BYTES_MAX: usize = 16 << 10;
/// Maximum length of the repository's name in the directory of its worktrees, in characters.
pub(crate) const WORKTREE_PROJECT_CHARS_MAX: usize = 40;
/// Maximum number of git worktrees that are listed.
pub(crate) const WORKTREES_MAX: usize = 1_000;
/// Maximum number of git worktrees that are inspected concurrently.
pub(crate) const WORKTREES_INSPECTED_MAX: usize = 4;
/// Maximum number of files and directories of a git worktree that are counted.
pub(crate) const WORKTREE_ENTRIES_MAX: usize = 2_000_000;
/// Maximum number of paths of each kind, and of commits, in the state of a git worktree.
pub(crate) const WORKTREE_PATHS_SHOWN_MAX: usize = 100;
/// Maximum length of the diff of a git worktree, in bytes.
pub(crate) const WORKTREE_DIFF_BYTES_MAX: usize = 256 << 10;
/// Maximum number of merges for one `workspaces apply`: a merge can name files that the next one
/// has to include, because they were renamed.
pub(crate) const APPLY_MERGES_MAX: usize = 4;
/// Maximum number of agents in a comparison.
pub(crate) const COMPARED_AGENTS_MAX: usize = 8;
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
/// Maximum nesting of submodules whose control files are protected; deeper ones are read-only.
pub(crate) const GIT_MODULES_DEPTH_MAX: usize = 5;
/// Longest wait for another process that locks a git directory.
pub(crate) const GIT_LOCK: Duration = Duration::from_secs(1);
/// Pause between two attempts to lock a git directory.
pub(crate) const GIT_LOCK_RETRY: Duration = Duration::from_millis(1);
/// Maximum size of the control files of repositories that are restored after a command, in bytes.
pub(crate) const CONTROL_FILES_BYTES_MAX: usize = 8 << 20;
/// Maximum number of commits in one `git_log` result.
pub(crate) const GIT_LOG_MAX: u64 = 200;
/// Maximum size of the text in one `git_diff` result, in bytes.
pub(crate) const GIT_DIFF_BYTES_MAX: usize = 50 << 10;

/// Timeout for fetching a page, including redirects.
pub(crate) const FETCH: Duration = Duration::from_secs(30);
/// Timeout for connecting to the host of a page.
pub(crate) const FETCH_CONNECT: Duration = Duration::from_secs(10);
/// Maximum number of redirects that `fetch` follows.
pub(crate) const FETCH_REDIRECTS_MAX: usize = 10;
/// Maximum number of bytes that are fetched from a page.
pub(crate) const FETCH_BYTES_MAX: usize = 5 << 20;
/// Maximum size of the page text that the model sees, in bytes.
pub(crate) const FETCH_TEXT_BYTES_MAX: usize = 50 << 10;
/// Maximum size of the text of an error page that the model sees, in bytes.
pub(crate) const FETCH_ERROR_BYTES_MAX: usize = 500;
/// Maximum nesting depth of HTML elements. A page with deeper nesting is not converted to Markdown.
pub(crate) const HTML_DEPTH_MAX: usize = 200;

/// Maximum size of a diagram's source, in bytes. This and the following limits exist because the
/// layout time grows faster than the diagram.
pub(crate) const DIAGRAM_SOURCE_BYTES_MAX: usize = 64 << 10;
/// Maximum number of nodes in a diagram.
pub(crate) const DIAGRAM_NODES_MAX: usize = 200;
/// Maximum number of edges in a diagram.
pub(crate) const DIAGRAM_EDGES_MAX: usize = 400;
/// Maximum nesting depth of subgraphs, or of record fields, in a diagram.
pub(crate) const DIAGRAM_DEPTH_MAX: usize = 20;
/// Maximum number of nodes in a diagram's layout: the diagram's nodes and the connectors of its
/// edges.
pub(crate) const DIAGRAM_ELEMENTS_MAX: usize = 600;

/// Default size of a `repo_map` result, in tokens.
pub(crate) const MAP_TOKENS: usize = 2_000;
/// Maximum size of a `repo_map` result, in tokens.
pub(crate) const MAP_TOKENS_MAX: usize = 20_000;
/// Estimated number of bytes per token.
pub(crate) const BYTES_PER_TOKEN: usize = 4;
/// Maximum number of source files that `repo_map` reads.
pub(crate) const MAP_FILES_MAX: usize = 20_000;
/// Maximum size of a source file that `repo_map` reads, in bytes.
pub(crate) const MAP_FILE_BYTES_MAX: u64 = 512 << 10;
/// Time limit for parsing one file for a `repo_map`.
pub(crate) const MAP_FILE_TIME: Duration = Duration::from_secs(5);
/// Time limit for reading all files for a `repo_map`.
pub(crate) const MAP_TIME: Duration = Duration::from_secs(30);
/// Maximum number of definitions per file in a `repo_map`.
pub(crate) const MAP_DEFINITIONS_MAX: usize = 2_000;
/// Maximum number of matches in progress in a tree-sitter query.
pub(crate) const MAP_MATCHES_MAX: u32 = 4_096;
/// Maximum length of a signature in the result of `repo_map`, in bytes.
pub(crate) const MAP_SIGNATURE_BYTES_MAX: usize = 160;
/// Position in a file's definitions, ranked by score, at which a definition's score is halved.
pub(crate) const MAP_FILE_EVEN: f64 = 10.0;
/// Maximum total size of the cached definitions of source files, over all sessions, in bytes.
pub(crate) const MAP_CACHE_BYTES_MAX: usize = 64 << 20;

/// Maximum number of lines per `read` call.
pub(crate) const READ_LINES_MAX: usize = 5_000;
/// Maximum number of bytes that `read` returns of one line.
pub(crate) const READ_LINE_BYTES_MAX: usize = 8 << 10;
/// Maximum size of a `read` result, in bytes.
pub(crate) const READ_BYTES_MAX: usize = 1 << 20;
/// Number of bytes at the start of a file that are searched for a NUL byte, which marks the file as
/// binary.
pub(crate) const BINARY_PROBE_BYTES: usize = 8 << 10;
/// Maximum size of an image that a model receives, in bytes.
pub(crate) const IMAGE_BYTES_MAX: usize = 5 << 20;
/// Maximum size of a file that `edit` changes, in bytes.
pub(crate) const EDIT_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of steps for comparing blocks in `edit`. A step is a line or 64 pairs of bytes.
pub(crate) const EDIT_COMPARE_STEPS_MAX: usize = 16 << 20;
/// Maximum number of candidate blocks that `edit` distinguishes.
pub(crate) const EDIT_PLACES_MAX: usize = 1_000;
/// Maximum size of a file that is searched for the text most similar to a text that was not found,
/// in bytes.
pub(crate) const EDIT_NEAREST_BYTES_MAX: usize = 4 << 20;
/// Maximum size of the text on one side of a diff, in bytes. Larger files are shown without their
/// text.
pub(crate) const DIFF_TEXT_BYTES_MAX: usize = 256 << 10;
/// Time limit for computing a minimal diff. After that, a coarser diff is used.
pub(crate) const DIFF_TIME: Duration = Duration::from_millis(100);
/// Maximum number of paths that `glob` returns.
pub(crate) const GLOB_PATHS_MAX: usize = 200;
/// Maximum number of entries that `list` shows.
pub(crate) const LIST_ENTRIES_MAX: usize = 500;
/// Maximum number of lines that `grep` shows.
pub(crate) const GREP_LINES_MAX: usize = 250;
/// Maximum memory that `grep` uses for one line (with `multiline`: for one file), in bytes. Longer
/// lines or larger files are skipped.
pub(crate) const GREP_HEAP_BYTES_MAX: usize = 64 << 20;
/// Maximum number of bytes that `grep` shows of one line.
pub(crate) const GREP_LINE_BYTES_MAX: usize = 500;

/// Default of `tools.mcp_wait_s`.
pub(crate) const MCP_START_WAIT: Duration = Duration::from_secs(10);
/// How long an empty directory for artifacts is kept, which a running process may be about to use.
pub(crate) const ARTIFACTS_EMPTY_KEPT: Duration = Duration::from_secs(86_400);
/// Number of sessions that `nuncio sessions list` shows.
pub(crate) const SESSIONS_SHOWN: usize = 20;
/// Number of ids that an error about an ambiguous id names.
pub(crate) const AMBIGUOUS_IDS_SHOWN: usize = 5;
/// Maximum time that `nuncio run` waits for background work after its last prompt.
pub(crate) const BACKGROUND_WAIT: Duration = Duration::from_secs(3600);
/// Default of `tools.mcp_wait_run_s`.
pub(crate) const MCP_START_WAIT_RUN: Duration = Duration::from_secs(60);
/// `nuncio run` shows a wait for MCP servers that is longer than this.
pub(crate) const MCP_WAIT_QUIET: Duration = Duration::from_secs(1);
/// Default of `tools.mcp_tokens`.
pub(crate) const MCP_SPECS_TOKENS: usize = 8_000;
/// Timeout for the initialization of an MCP server, with the lists of its tools and prompts.
pub(crate) const MCP_START: Duration = Duration::from_secs(60);
/// Maximum time that a user needs to sign in to an MCP server.
pub(crate) const MCP_LOGIN: Duration = Duration::from_secs(600);
/// Maximum number of connections to the listener of a sign-in to an MCP server.
pub(crate) const MCP_LOGIN_CONNECTIONS_MAX: usize = 16;
/// Timeout of reading a request, and of writing its response, during a sign-in to an MCP server.
pub(crate) const MCP_LOGIN_REQUEST: Duration = Duration::from_secs(30);
/// Maximum length of the head of a request during a sign-in to an MCP server, in bytes.
pub(crate) const MCP_LOGIN_HEAD_BYTES_MAX: usize = 16 << 10;
/// Maximum time to wait until another process has refreshed the tokens of an MCP server.
pub(crate) const MCP_TOKEN_LOCK: Duration = Duration::from_secs(30);
/// Interval of the checks of whether the user has signed in to an MCP server.
pub(crate) const MCP_LOGIN_POLL: Duration = Duration::from_secs(1);
/// Interval of the attempts to lock the tokens of an MCP server.
pub(crate) const MCP_TOKEN_LOCK_POLL: Duration = Duration::from_millis(20);
/// Default of `mcp.NAME.timeout_s`.
pub(crate) const MCP_CALL_DEFAULT: Duration = Duration::from_secs(120);
/// Maximum time of a call to an MCP server that reports progress.
pub(crate) const MCP_CALL_MAX: Duration = Duration::from_secs(3600);
/// How long a call waits for an MCP server that is starting or restarting.
pub(crate) const MCP_CALL_START: Duration = Duration::from_secs(30);
/// How long a cancelled call waits until its cancellation is sent to the MCP server.
pub(crate) const MCP_CANCEL: Duration = Duration::from_millis(500);
/// Timeout for the end of an MCP server after its input is closed. Then its processes are killed.
pub(crate) const MCP_GOODBYE: Duration = Duration::from_millis(500);
/// How long the rest of the output of an MCP server is read after its process has ended.
pub(crate) const MCP_REST: Duration = Duration::from_millis(500);
/// Maximum number of restarts of an MCP server whose runs are shorter than [`MCP_STABLE`]. After
/// that, the server stays off.
pub(crate) const MCP_RESTARTS_MAX: u32 = 5;
/// Delay before the first restart of an MCP server. It doubles with each further restart.
pub(crate) const MCP_RESTART: Duration = Duration::from_millis(250);
/// A run of an MCP server of this length resets the number of its restarts.
pub(crate) const MCP_STABLE: Duration = Duration::from_secs(60);
/// Maximum number of concurrent MCP servers of a process.
pub(crate) const MCP_SERVERS_MAX: usize = 256;
/// Maximum size of a message of an MCP server, in bytes. Larger messages are dropped.
pub(crate) const MCP_MESSAGE_BYTES_MAX: usize = 32 << 20;
/// Maximum number of tools, of prompts and of resources that are read from one MCP server.
pub(crate) const MCP_ITEMS_MAX: usize = 2_000;
/// Maximum number of pages of a list of an MCP server.
pub(crate) const MCP_PAGES_MAX: usize = 100;
/// Maximum length of the description of an MCP server's tool, in characters.
pub(crate) const MCP_DESCRIPTION_CHARS_MAX: usize = 2_000;
/// Maximum length of the name of an MCP server's tool, which all providers accept.
pub(crate) const MCP_NAME_CHARS_MAX: usize = 64;
/// Maximum length of a line of an MCP server's stderr that is logged, in bytes.
pub(crate) const MCP_LOG_LINE_BYTES_MAX: usize = 1_000;
/// Maximum number of lines of stderr that are logged of one run of an MCP server.
pub(crate) const MCP_LOG_LINES_MAX: usize = 1_000;
/// Maximum number of progress reports that are kept for calls that are not registered yet.
pub(crate) const MCP_PROGRESS_EARLY_MAX: usize = 64;

/// Least time between two progress reports of a call that are shown.
pub(crate) const MCP_PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
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
/// Maximum size of the structured content in the details of an MCP call, in bytes. Larger content
/// is stored as an artifact.
pub(crate) const MCP_STRUCTURED_BYTES_MAX: usize = 64 << 10;
/// Maximum size of an address, a name or a description in the result of an MCP call, in bytes.
pub(crate) const MCP_FIELD_BYTES_MAX: usize = 2_000;
/// Maximum length of the file name extension of an artifact, which an MCP server chooses.
pub(crate) const MCP_EXTENSION_CHARS_MAX: usize = 10;
/// Maximum size of an error message of an MCP server, in bytes.
pub(crate) const MCP_ERROR_BYTES_MAX: usize = 4 << 10;
/// Maximum size of a progress report of an MCP server that is shown, in bytes.
pub(crate) const MCP_PROGRESS_BYTES_MAX: usize = 1_000;
/// Maximum number of new and of removed tools of an MCP server that a notice names.
pub(crate) const MCP_NAMES_SHOWN: usize = 50;
/// Minimum time between two requests for the lists of an MCP server.
pub(crate) const MCP_LIST_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of characters of the arguments in the title of an MCP call.
pub(crate) const MCP_TITLE_CHARS_MAX: usize = 80;
/// Maximum size of the texts of a prompt or resource of an MCP server that becomes part of a
/// message, in bytes.
pub(crate) const MCP_PROMPT_BYTES_MAX: usize = 256 << 10;
/// Maximum size of the texts of all resources of MCP servers that a message attaches, in bytes.
pub(crate) const MCP_ATTACHED_BYTES_MAX: usize = 2 * MCP_PROMPT_BYTES_MAX;
/// Maximum number of resources of MCP servers that a message attaches.
pub(crate) const MCP_ATTACHED_MAX: usize = 8;
/// Maximum number of requests of MCP servers that wait during a tool call, and of requests to the
/// model in one call.
pub(crate) const MCP_REQUESTS_MAX: usize = 16;
/// Maximum size of the message and the schema of a form of an MCP server, in bytes.
pub(crate) const MCP_FORM_BYTES_MAX: usize = 64 << 10;
/// Maximum number of values of a field that a permission request offers as options.
pub(crate) const MCP_FORM_OPTIONS_MAX: usize = 20;
/// Maximum length of the name of such an option, in characters.
pub(crate) const MCP_FORM_OPTION_CHARS_MAX: usize = 100;
/// Maximum size of the messages of a request of an MCP server to the model, in bytes.
pub(crate) const MCP_SAMPLING_BYTES_MAX: usize = 256 << 10;
/// Maximum number of tokens of the answer to such a request.
pub(crate) const MCP_SAMPLING_TOKENS_MAX: u32 = 8_192;
/// Estimated size of a token of such an answer, in bytes.
pub(crate) const MCP_SAMPLING_TOKEN_BYTES: usize = 4;
/// Maximum number of tools in a result of `mcp_search`.
pub(crate) const MCP_SEARCH_RESULTS_MAX: usize = 10;

/// Maximum number of restarts of a language server that crashes. After that, the server stays off.
pub(crate) const LSP_RESTARTS_MAX: u32 = 3;
/// Maximum number of concurrent language servers.
pub const LSP_SERVERS_MAX: usize = 8;
/// Timeout for the initialization of a language server.
pub(crate) const LSP_START: Duration = Duration::from_secs(60);
/// Timeout for the shutdown of a language server.
pub(crate) const LSP_GOODBYE: Duration = Duration::from_millis(500);
/// How long an edit waits for diagnostics.
pub(crate) const LSP_EDIT_WAIT: Duration = Duration::from_secs(2);
/// How long the `diagnostics` tool waits for diagnostics.
pub(crate) const LSP_ASK_WAIT: Duration = Duration::from_secs(10);
/// How long a language server must be silent before its diagnostics count as complete.
pub(crate) const LSP_QUIET: Duration = Duration::from_millis(250);
/// Maximum size of the header of a language server's message, in bytes.
pub const LSP_HEADER_BYTES_MAX: usize = 4 << 10;
/// Maximum size of the body of a language server's message, in bytes.
pub const LSP_MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Maximum number of messages that wait to be sent to one language server.
pub(crate) const LSP_MESSAGES_QUEUED_MAX: usize = 64;
/// Maximum size of a file that is sent to a language server, in bytes.
pub(crate) const LSP_DOCUMENT_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of documents that are open in one language server.
pub(crate) const LSP_DOCUMENTS_OPEN_MAX: usize = 16;
/// Maximum number of files per tool call that are checked for diagnostics.
pub(crate) const LSP_CALL_FILES_MAX: usize = 10;
/// Maximum number of files whose diagnostics are kept.
pub(crate) const LSP_FILES_MAX: usize = 500;
/// Maximum number of diagnostics that are kept for one file.
pub(crate) const LSP_FILE_DIAGNOSTICS_MAX: usize = 100;
/// Maximum number of diagnostics that are shown at once.
pub(crate) const LSP_SHOWN_MAX: usize = 20;
/// Maximum number of concurrent progress reports that are tracked for one language server.
pub(crate) const LSP_WORKS_MAX: usize = 64;
/// Maximum length of a diagnostic's message, in characters.
pub(crate) const LSP_MESSAGE_CHARS_MAX: usize = 500;

/// How long an unused session stays open in a server.
pub(crate) const SESSION_IDLE: Duration = Duration::from_secs(3600);
/// Interval at which a server looks for unused sessions.
pub(crate) const SESSION_IDLE_LOOK: Duration = Duration::from_secs(60);
/// How long opening a session waits for another session to become unused if the maximum number of
/// sessions is open.
pub(crate) const CAPACITY_WAIT: Duration = patience(100);
/// Minimum pause between two event reads for a client that follows all sessions.
pub(crate) const FOLLOW_ALL_PAUSE: Duration = Duration::from_millis(10);
/// Time between a change of the status of agents and its read for a client that follows it.
pub(crate) const STATUS_PAUSE: Duration = Duration::from_millis(50);
/// Interval at which the status of agents is read without a commit, for sessions that are opened
/// and closed without an event.
pub(crate) const STATUS_RECHECK: Duration = Duration::from_secs(2);
/// Maximum number of sessions of other processes in the status of agents.
pub(crate) const STATUS_EXTERNAL_MAX: usize = 1000;
/// Maximum total size of the attachments that one message embeds, in bytes.
pub(crate) const MESSAGE_ATTACHMENTS_BYTES_MAX: usize = 20 << 20;
/// How long the deletion event of a session is kept for clients that follow all sessions.
pub(crate) const DELETED_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Maximum number of connections to the HTTP server, or half of the open-file limit if that is
/// lower. At the limit, the oldest connection that has not authenticated is closed. If all
/// connections have authenticated, the new connection is closed.
pub(crate) const CONNECTIONS_MAX: usize = 4096;
/// Number of unauthenticated connections that are closed together when the server runs out of file
/// descriptors.
pub(crate) const CONNECTIONS_CLOSED: usize = 64;
/// Pause after a connection could not be accepted, for example because no file descriptor is free.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// Timeout for receiving the head of a request, including the wait for the next request on an idle
/// connection.
pub(crate) const HTTP_HEAD: Duration = Duration::from_secs(30);
/// Maximum size of a request's head (request line and headers), in bytes.
pub(crate) const HTTP_HEAD_BYTES_MAX: usize = 64 << 10;
/// Size of a connection's read buffer, in bytes.
pub(crate) const HTTP_BUFFER_BYTES: usize = 64 << 10;
/// Timeout for receiving the body of a request.
pub(crate) const HTTP_BODY: Duration = Duration::from_secs(30);
/// Maximum size of a request body, in bytes: large enough for an attachment in base64.
pub(crate) const HTTP_BODY_BYTES_MAX: usize = 16 << 20;
/// Maximum length of an unrouted path in the log, in characters.
pub(crate) const LOG_PATH_CHARS_MAX: usize = 200;
/// Maximum number of characters of an unknown field's name that are compared with the known names.
pub(crate) const FIELD_NAME_CHARS_MAX: usize = 64;
/// Maximum number of JSON values in a request body.
pub(crate) const HTTP_BODY_VALUES_MAX: usize = 1_000_000;
/// Interval at which an open stream's access token is validated again.
pub(crate) const TOKEN_AGAIN: Duration = Duration::from_secs(1);
/// Maximum size of a request body that does not count towards [`HTTP_BODIES_BYTES_MAX`], in bytes.
pub(crate) const HTTP_BODY_BYTES_SMALL: u64 = 16 << 10;
/// Maximum total size of the request bodies that are received concurrently, in bytes.
pub(crate) const HTTP_BODIES_BYTES_MAX: usize = 64 << 20;
/// Maximum number of calls in one batch on `/rpc`.
pub(crate) const RPC_BATCH_MAX: u32 = 100;
/// Maximum number of outgoing messages that one `/rpc` connection buffers.
pub(crate) const RPC_MESSAGES_QUEUED_MAX: usize = 8;
/// Maximum number of calls per socket (WebSocket connection to `/rpc`) that are running or whose
/// responses are not sent yet.
pub(crate) const RPC_CALLS_MAX: usize = 32;
/// Maximum number of messages that are handled concurrently per socket. Further messages are not
/// read.
pub(crate) const RPC_MESSAGES_MAX: usize = 2 * RPC_CALLS_MAX + RPC_MESSAGES_QUEUED_MAX;
/// Maximum number of concurrent read-only calls per socket.
pub(crate) const RPC_READS_MAX: usize = 4;
/// Maximum total size of the params of the running calls on one socket, in bytes.
pub(crate) const RPC_PARAMS_BYTES_MAX: usize = 2 * HTTP_BODY_BYTES_MAX;
/// Maximum total size of unread responses, over all sockets, in bytes.
pub(crate) const RPC_UNREAD_BYTES_MAX: usize = 256 << 20;
/// Maximum number of subscriptions per socket.
pub(crate) const RPC_SUBSCRIPTIONS_MAX: usize = 32;
/// Interval between heartbeats on an idle stream.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long connections may take to close at shutdown, after the turns have ended.
pub(crate) const HTTP_GOODBYE: Duration = Duration::from_secs(2);
/// Maximum number of responses that are stored for repeated requests (`Idempotency-Key`).
pub(crate) const IDEMPOTENCY_KEYS_MAX: usize = 10_000;
/// How long a response is stored for repeated requests.
pub(crate) const IDEMPOTENCY_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Maximum length of an `Idempotency-Key`, in characters.
pub(crate) const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;
/// Maximum number of failed logins in a burst. Further failed logins are rejected as
/// `rate_limited`.
pub(crate) const LOGIN_FAILURES_MAX: f64 = 20.0;
/// Rate per second at which failed logins are permitted again after a burst.
pub(crate) const LOGIN_FAILURES_PER_S: f64 = 2.0;
/// Minimum length of a token in a token file, in characters.
pub(crate) const TOKEN_CHARS_MIN: usize = 32;
/// Maximum length of a token's name, in characters.
pub(crate) const TOKEN_NAME_CHARS_MAX: usize = 64;

/// How long a trace collector may take to accept spans.
pub const TRACES_SENT: Duration = Duration::from_secs(2);

/// Maximum size of a file that nuncio reads for its own use, in bytes: settings, prompts, ignore
/// files, files in a repository's `.git`.
pub(crate) const OWN_FILE_BYTES_MAX: u64 = 1 << 20;
/// Maximum size of a stored record of trusted settings, or of the files that they name, in bytes.
pub(crate) const TRUST_RECORD_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of concurrent directory searches per process. Further searches wait.
pub(crate) const WALKS_MAX: usize = 8;
/// Maximum number of rules in the ignore files of a directory and its ancestors. Further rules are
/// skipped.
pub const IGNORE_RULES_MAX: usize = 20_000;
/// Maximum number of threads per directory search.
pub(crate) const WALK_THREADS_MAX: usize = 12;
/// Maximum size of one instruction file, in bytes.
pub(crate) const INSTRUCTION_BYTES_MAX: usize = 32 << 10;
/// Maximum total size of all instruction files, in bytes.
pub(crate) const INSTRUCTIONS_BYTES_MAX: usize = 64 << 10;
/// Maximum number of instruction files, including those that others import.
pub(crate) const INSTRUCTION_FILES_MAX: usize = 64;
/// Maximum depth of imports in instruction files.
pub(crate) const IMPORT_DEPTH_MAX: usize = 5;
/// Maximum time to extract the text of a document.
pub(crate) const DOCUMENT_TIME_MAX: Duration = Duration::from_secs(10);
/// Maximum size of the extracted text of a document, in bytes.
pub(crate) const DOCUMENT_TEXT_BYTES_MAX: usize = 256 << 10;
/// Maximum size of a decompressed page of a PDF document, in bytes.
pub(crate) const PDF_PAGE_BYTES_MAX: usize = 16 << 20;
/// Maximum size of a decompressed part of an office document, in bytes.
pub(crate) const DOCUMENT_PART_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of shared strings, and of cell styles, that are read of a workbook.
pub(crate) const DOCUMENT_STRINGS_MAX: usize = 500_000;
/// Maximum total size of the shared strings that are read of a workbook, in bytes.
pub(crate) const DOCUMENT_STRINGS_BYTES_MAX: usize = 16 << 20;
/// Maximum number of empty columns, and of spaces, that an office document repeats in the text.
pub(crate) const DOCUMENT_COLUMNS_MAX: usize = 100;
/// Maximum length of the preview of an attachment, in characters.
pub(crate) const PREVIEW_CHARS_MAX: usize = 300;
/// Maximum length of the type of a custom message, in characters.
pub(crate) const CUSTOM_TYPE_CHARS_MAX: usize = 100;
/// Maximum number of files of slash commands, and of skills.
pub(crate) const PROMPT_FILES_MAX: usize = 200;
/// Maximum number of entries of skill directories that are read to list their scripts.
pub(crate) const SKILL_ENTRIES_MAX: usize = 20_000;
/// Maximum length of the description of a skill or a slash command, in characters.
pub(crate) const SKILL_DESCRIPTION_CHARS_MAX: usize = 500;
/// Maximum size of the list of skills in the system prompt, in bytes (about 2000 tokens).
pub(crate) const SKILLS_BYTES_MAX: usize = 8 << 10;
/// Default size of the description of a repository in the first request of a session, in tokens.
pub(crate) const BUNDLE_TOKENS: usize = 1_500;
/// Maximum size of that description, in tokens.
pub(crate) const BUNDLE_TOKENS_MAX: usize = 20_000;
/// How long the first request of a session may wait for the description. It has what was found by
/// then.
pub(crate) const BUNDLE_TIME: Duration = patience(300);
/// Maximum number of files that are found for the description.
pub(crate) const BUNDLE_FILES_MAX: usize = 50_000;
/// Maximum number of entries of the top directory in the description.
pub(crate) const BUNDLE_ENTRIES_MAX: usize = 200;
/// Maximum number of languages in the description.
pub(crate) const BUNDLE_LANGUAGES_MAX: usize = 6;
/// Maximum number of files in the description that fit the prompt.
pub(crate) const BUNDLE_RELEVANT_MAX: usize = 40;
/// Maximum number of definitions of each of these files.
pub(crate) const BUNDLE_DEFINITIONS_MAX: usize = 3;
/// Maximum number of words of a prompt that are compared with the files.
pub(crate) const BUNDLE_WORDS_MAX: usize = 500;
/// Default timeout of a hook.
pub(crate) const HOOK: Duration = Duration::from_secs(5);
/// Maximum timeout of a hook.
pub(crate) const HOOK_MAX: Duration = Duration::from_secs(600);
/// How long a hook may take to end after its timeout or a cancellation. Then its result is not
/// awaited.
pub(crate) const HOOK_END: Duration = Duration::from_secs(5);
/// Maximum size of the request to a hook, in bytes.
pub(crate) const HOOK_REQUEST_BYTES_MAX: usize = 16 << 20;
/// Maximum size of the answer of a hook, in bytes.
pub(crate) const HOOK_ANSWER_BYTES_MAX: usize = 16 << 20;
/// Maximum size of the error output of a hook that is read, in bytes. The rest is discarded.
pub(crate) const HOOK_ERROR_BYTES_MAX: usize = 4 << 10;
/// Maximum length of a hook's command in events, in characters.
pub(crate) const HOOK_NAME_CHARS_MAX: usize = 100;
/// Maximum size of the note about a changed input in the result of a tool call, in bytes.
pub(crate) const HOOK_INPUT_BYTES_MAX: usize = 1 << 10;
/// Maximum size of a message of a hook to the model, in bytes. The rest is cut.
pub(crate) const HOOK_MESSAGE_BYTES_MAX: usize = 16 << 10;
/// Maximum number of messages of one run of a hook. The others are dropped.
pub(crate) const HOOK_MESSAGES_MAX: usize = 8;
/// Timeout of an `api_key_command`.
pub(crate) const KEY_COMMAND: Duration = Duration::from_secs(10);

/// How long running turns may take to end after the end of input or a signal.
pub(crate) const DRAIN: Duration = Duration::from_secs(3);
/// Maximum number of sessions on one `session/list` page.
pub(crate) const SESSIONS_PAGE: usize = 50;
/// Default number of messages or turns on a page.
pub(crate) const LIST_PAGE: usize = 50;
/// Maximum number of messages or turns on a page.
pub(crate) const LIST_PAGE_MAX: usize = 200;
/// Maximum number of event pages that are read to fill a page of messages. Reading continues beyond
/// the limit only while the page of messages is empty.
pub(crate) const MESSAGES_PAGES_MAX: usize = 4;
/// Maximum size of an attachment's content, in bytes.
pub(crate) const ATTACHMENT_BYTES_MAX: usize = 10 << 20;
/// Maximum length of an attachment's file name, in bytes.
pub(crate) const FILE_NAME_BYTES_MAX: usize = 255;
/// Maximum number of pages of [`SESSIONS_PAGE`] sessions that are searched for sessions visible to
/// a client.
pub(crate) const SESSIONS_PAGES_MAX: usize = 40;
/// Maximum number of tool calls, and of permission requests, in the summary of a session's row.
pub(crate) const SUMMARY_CALLS_MAX: usize = 64;
/// Maximum number of stored sessions that are searched for permission requests of other processes.
pub(crate) const WAITING_SESSIONS_MAX: usize = 1000;
/// Maximum length of a title derived from the first prompt, in characters.
pub(crate) const TITLE_CHARS_MAX: usize = 80;
/// Maximum length of a title that a client sets, in characters. A longer title is truncated.
pub(crate) const SET_TITLE_CHARS_MAX: usize = 500;
/// Maximum number of nested elements that are unwrapped to find a title.
pub(crate) const TITLE_DEPTH_MAX: usize = 8;
/// Maximum size of a JSON Lines record in the input of `run --json -` and `sessions import`, and of
/// a prompt on standard input, in bytes.
pub(crate) const INPUT_LINE_BYTES_MAX: usize = FRAME_BYTES_MAX;
/// How long `run` waits for the end of standard input before it prints a notice.
pub(crate) const INPUT_NOTICE: Duration = Duration::from_secs(2);
/// How long `run` waits for input if standard input is a silent socket. After that, `run` uses the
/// prompt that it has.
pub(crate) const INPUT_SOCKET: Duration = Duration::from_secs(3);
/// How long an error about a model's name waits for the names that the provider offers.
pub(crate) const MODEL_NAMES: Duration = Duration::from_secs(2);
/// How long a provider may take to list its models.
pub(crate) const MODEL_LIST: Duration = Duration::from_secs(10);
/// Maximum size of one page of a provider's list of models, in bytes.
pub(crate) const MODEL_LIST_BYTES_MAX: usize = 8 << 20;
/// Maximum number of pages of a provider's list of models.
pub(crate) const MODEL_LIST_PAGES_MAX: usize = 20;
/// Maximum number of models of a provider. Further models are left out.
pub(crate) const MODEL_LIST_MODELS_MAX: usize = 2_000;
/// Maximum length of a model's name, in characters. Models with longer names are left out.
pub(crate) const MODEL_LIST_TEXT_CHARS_MAX: usize = 200;
/// How long a cached list of models is up to date.
pub(crate) const MODEL_LIST_FRESH: Duration = Duration::from_secs(24 * 3600);
/// How long a cached list of a server on this machine is up to date.
pub(crate) const MODEL_LIST_LOCAL_FRESH: Duration = Duration::from_secs(60);
/// How long after the creation of a session its process requests lists of models that are out of
/// date, so that the requests do not delay the first prompt.
pub(crate) const MODEL_LIST_DELAY: Duration = Duration::from_secs(3);
/// How long a process waits before it requests a provider's list of models again in the background.
pub(crate) const MODEL_LIST_AGAIN: Duration = Duration::from_secs(3600);
/// Maximum number of lists in the cache. The oldest lists are removed.
pub(crate) const MODEL_CACHE_LISTS_MAX: usize = 64;
/// Maximum size of the cache of lists of models, in bytes. The oldest lists are removed, and a
/// larger file is ignored.
pub(crate) const MODEL_CACHE_BYTES_MAX: usize = 4 << 20;
/// How long writing to the cache of lists of models waits for other processes.
pub(crate) const MODEL_CACHE_LOCKED: Duration = Duration::from_secs(2);
/// Interval between attempts to lock the cache of lists of models.
pub(crate) const MODEL_CACHE_LOCK_AGAIN: Duration = Duration::from_millis(20);
/// Maximum number of values of the session option `model`.
pub(crate) const MODEL_CHOICES_MAX: usize = 200;
/// Maximum number of names in the hint of an error about a model's name.
pub(crate) const MODEL_NAMES_SHOWN_MAX: usize = 3;
/// How long `doctor` waits for the first event of a model.
pub(crate) const DOCTOR_MODEL: Duration = Duration::from_secs(30);
/// Maximum time of the programs that `nuncio doctor` starts.
pub(crate) const DOCTOR_PROGRAMS: Duration = Duration::from_secs(15);
/// Maximum size of an `api_key_command`'s output, in bytes.
pub(crate) const KEY_BYTES_MAX: usize = 16 << 10;
/// Maximum number of threads for blocking work: file and store access.
pub(crate) const BLOCKING_THREADS_MAX: usize = 32;

/// Default of the setting `agents.idle_ttl_s`.
pub(crate) const AGENT_IDLE: Duration = Duration::from_secs(600);
/// Maximum time until a hosted agent that was started answers its first requests.
pub(crate) const AGENT_START: Duration = Duration::from_secs(60);
/// Maximum time from a hosted agent's request for a login to its next response, during its start.
pub(crate) const AGENT_LOGIN: Duration = Duration::from_secs(5);
/// Maximum time of a command that reports the login of a hosted agent.
pub(crate) const AGENT_LOGIN_STATUS: Duration = Duration::from_secs(10);
/// Maximum time until a hosted agent answers a request that is not a prompt.
pub(crate) const AGENT_REQUEST: Duration = Duration::from_secs(30);
/// Time until a hosted agent must have ended a cancelled turn. Then its process is ended.
pub(crate) const AGENT_CANCEL: Duration = Duration::from_secs(5);
/// Time that a hosted agent gets to exit after its standard input was closed.
pub(crate) const AGENT_GOODBYE: Duration = Duration::from_secs(2);
/// Time after a cancelled turn until the processes that a hosted agent started during the turn must
/// have ended. Then the agent is ended with all its processes.
pub(crate) const AGENT_LEFTOVER: Duration = Duration::from_secs(2);
/// How often the processes of a hosted agent are listed after a cancelled turn.
pub(crate) const AGENT_LEFTOVER_POLL: Duration = Duration::from_millis(50);
/// The delay before a hosted agent is started again, after a first failure. It doubles with each
/// failure up to [`AGENT_RESTART_MAX`].
pub(crate) const AGENT_RESTART: Duration = Duration::from_secs(1);
/// Maximum delay before a hosted agent is started again.
pub(crate) const AGENT_RESTART_MAX: Duration = Duration::from_secs(30);
/// Maximum number of messages of a hosted agent that wait for the turn.
pub(crate) const AGENT_MESSAGES_QUEUED_MAX: usize = 256;
/// Maximum size of these messages, in bytes.
pub(crate) const AGENT_MESSAGES_QUEUED_BYTES_MAX: usize = 32 << 20;
/// Maximum size of the end of a hosted agent's standard error that is kept, in bytes.
pub(crate) const AGENT_STDERR_BYTES_MAX: usize = 8 << 10;
/// Maximum size of the output of a hosted agent's tool call that is recorded, in bytes.
pub(crate) const AGENT_OUTPUT_BYTES_MAX: usize = 256 << 10;
/// Number of paths in the title of a hosted agent's tool call.
pub(crate) const AGENT_PATHS_SHOWN: usize = 3;
/// Size at which a message of a hosted agent is recorded, in bytes. Its rest is another message.
pub(crate) const AGENT_MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Maximum size of the events of one turn of a hosted agent, in bytes. Its text and thoughts are
/// limited by [`MODEL_ANSWER_BYTES_MAX`], as is the content of its calls before their results.
pub(crate) const AGENT_TURN_BYTES_MAX: usize = 64 << 20;
/// Maximum number of options, commands, plan entries and parts of a call of a hosted agent.
pub(crate) const AGENT_ITEMS_MAX: usize = 500;
/// Time to wait for an explanation on the standard error of an agent that answered nothing.
pub(crate) const AGENT_STDERR: Duration = Duration::from_secs(1);
/// Interval of the attempts to read it.
pub(crate) const AGENT_STDERR_POLL: Duration = Duration::from_millis(5);
/// Maximum time of one request that finds out whether the server of a hosted agent answers.
pub(crate) const AGENT_PROBE: Duration = Duration::from_millis(500);
/// Number of ports that are tried for the server of a hosted agent.
pub(crate) const AGENT_PORTS_MAX: usize = 5;
/// Maximum time without a byte of an agent's event stream, which has an event every 10 s.
pub(crate) const AGENT_EVENTS_IDLE: Duration = Duration::from_secs(30);
/// The delay before a closed event stream of an agent is opened again.
pub(crate) const AGENT_RECONNECT: Duration = Duration::from_millis(100);
/// How long a turn goes on after its agent reported that it is idle, for reports that come later.
pub(crate) const AGENT_SETTLE: Duration = Duration::from_secs(2);
/// Maximum number of commands of a hosted agent that run, and that wait, in its turn.
pub(crate) const AGENT_COMMANDS_MAX: usize = 8;
/// How long a permission request waits for the input of its call.
pub(crate) const AGENT_CALL_INPUT: Duration = Duration::from_secs(1);
/// Maximum size of a response of an agent's server, in bytes.
pub(crate) const AGENT_RESPONSE_BYTES_MAX: usize = 32 << 20;
/// Maximum number of an agent's messages that are read after a reconnection.
pub(crate) const AGENT_MESSAGES_READ_MAX: usize = 200;

/// Maximum number of terminal clients of agents whose status is kept.
pub(crate) const TERMINALS_MAX: usize = 256;
/// Maximum size of a hook request of a terminal client, in bytes.
pub(crate) const HOOK_BYTES_MAX: usize = 4 << 20;
/// Maximum length of the session id in a hook request, in bytes.
pub(crate) const HOOK_SESSION_BYTES_MAX: usize = 128;
/// Interval at which the transcript of a working terminal client is read.
pub(crate) const TRANSCRIPT_POLL: Duration = Duration::from_millis(200);
/// Maximum number of bytes that are read from the end of a transcript.
pub(crate) const TRANSCRIPT_BYTES_MAX: u64 = 64 << 10;
/// Time without a hook and without a change of the transcript after which a busy terminal client
/// counts as idle: longer than its commands may run.
pub(crate) const TERMINAL_SILENT: Duration = Duration::from_secs(15 * 60);
/// Time without a hook after which the status of a terminal client is forgotten.
pub(crate) const TERMINAL_KEPT: Duration = Duration::from_secs(24 * 3600);
/// How long a server may take to accept the first hook request of a terminal client.
pub(crate) const HOOK_ACCEPTED: Duration = Duration::from_secs(1);
/// Seconds that a terminal client waits for the response to a hook request.
pub(crate) const HOOK_TIMEOUT_S: u64 = 5;
