//! Every limit in one place: queues, sizes, times and counts. A name ends in its unit, then `_MAX`.

use std::time::Duration;

/// Longest JSON-RPC message (one line) that the stdio transport accepts, in bytes.
pub(crate) const FRAME_BYTES_MAX: usize = 32 << 20;
/// Requests of one connection that may run concurrently. Further ones fail with `overloaded`.
pub(crate) const REQUESTS_RUNNING_MAX: usize = 1024;
/// How long a client may stop reading before its connection is considered dead.
pub(crate) const STALLED: Duration = Duration::from_secs(60);
/// Replies in the outgoing queue of one stdio connection.
pub(crate) const REPLIES_QUEUED_MAX: usize = 1024;
/// Events that a cursor reads at a time. Bounds how long a reply waits behind other events.
pub(crate) const PAGE_EVENTS: usize = 256;
/// Size of a page of events, in bytes; the page ends with the event that exceeds it.
pub(crate) const PAGE_BYTES_MAX: usize = 4 << 20;

/// Events that wait for the log writer, over all sessions.
pub(crate) const APPENDS_QUEUED_MAX: usize = 4096;
/// Events that one transaction writes.
pub(crate) const BATCH_EVENTS_MAX: usize = 512;
/// Newest events of a session that are kept in memory for its followers.
pub(crate) const TAIL_EVENTS_MAX: usize = 512;
/// Text of the events that [`TAIL_EVENTS_MAX`] counts, in bytes.
pub(crate) const TAIL_BYTES_MAX: usize = 256 << 10;
/// Interval at which a followed session is polled for events of another process.
pub(crate) const EXTERNAL_POLL: Duration = Duration::from_millis(50);
/// Polls of [`EXTERNAL_POLL`] between two checks that the owner of a running turn is alive.
pub(crate) const EXTERNAL_ORPHANS: u64 = 20;
/// How long SQLite waits for another process's transaction (busy timeout).
pub const STORE_BUSY: Duration = Duration::from_secs(5);

/// How long a write is retried while another process locks the store. Then the events are lost.
pub const STORE_LOCKED_MAX: Duration = Duration::from_secs(15);
/// Pause between two attempts to write to a locked store.
pub(crate) const STORE_RETRY: Duration = Duration::from_millis(50);
/// Pause between two attempts to resume a session after its events were lost.
pub(crate) const STORE_RECOVERY: Duration = Duration::from_millis(500);

/// How long artifacts are kept after the last event of their session.
pub const ARTIFACTS_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// Artifacts of a closed session, in bytes. The oldest beyond that are removed.
pub const ARTIFACTS_BYTES_MAX: u64 = 256 << 20;

/// Model requests of one turn. Then the turn stops with `max_turn_requests`.
pub(crate) const TURN_REQUESTS_MAX: u32 = 200;
/// Queued messages of a session. Further ones fail with `overloaded`.
pub(crate) const QUEUED_MESSAGES_MAX: usize = 64;
/// Prompts of a session that wait for their turn. Further ones fail with `session_busy`.
pub(crate) const PROMPTS_WAITING_MAX: usize = 16;
/// Attempts at one model request.
pub(crate) const MODEL_ATTEMPTS_MAX: u32 = 8;
/// Attempts at one model request if a local address refuses the connection.
pub(crate) const MODEL_LOCAL_ATTEMPTS_MAX: u32 = 3;
/// Pause after the first failed model request. Doubles with each attempt.
pub(crate) const MODEL_BACKOFF: Duration = Duration::from_millis(100);
/// Longest pause between two attempts, also if `Retry-After` asks for more.
pub(crate) const MODEL_BACKOFF_MAX: Duration = Duration::from_secs(60);
/// How long a model's stream may be silent before it counts as interrupted.
pub(crate) const MODEL_IDLE: Duration = Duration::from_secs(180);
/// [`MODEL_IDLE`] for a server on this machine, which may process a long prompt first.
pub(crate) const MODEL_LOCAL_IDLE: Duration = Duration::from_secs(900);
/// Longest random addition to a pause, so that concurrent failures do not retry together.
pub(crate) const MODEL_JITTER: Duration = Duration::from_millis(20);
/// How long an idle connection to a model's host stays open.
pub(crate) const MODEL_KEEP_ALIVE: Duration = Duration::from_secs(90);
/// Time to connect to a model's host.
pub(crate) const MODEL_CONNECT: Duration = Duration::from_secs(15);
/// One server-sent event of a model's stream, in bytes.
pub(crate) const MODEL_EVENT_BYTES_MAX: usize = 16 << 20;
/// Bytes of a model's error response that are read.
pub(crate) const MODEL_ERROR_BYTES_MAX: usize = 64 << 10;
/// Characters of a model's error message that are shown.
pub(crate) const MODEL_ERROR_CHARS_MAX: usize = 1000;
/// Text, thinking, arguments and provider state of one model answer together, in bytes.
pub const MODEL_ANSWER_BYTES_MAX: usize = 8 << 20;
/// Tool calls of one model answer.
pub(crate) const MODEL_ANSWER_CALLS_MAX: usize = 256;
/// Blocks of text and thinking of one model answer.
pub(crate) const MODEL_ANSWER_BLOCKS_MAX: usize = 1024;
/// Bytes received for one model answer, protocol overhead included.
pub(crate) const MODEL_STREAM_BYTES_MAX: usize = 512 << 20;
/// File of a scripted model, in bytes.
pub const SCRIPT_BYTES_MAX: u64 = 16 << 20;
/// Time to look for local model servers, all together.
pub(crate) const MODEL_PROBE: Duration = Duration::from_millis(300);
/// Response that identifies a local model server, in bytes.
pub(crate) const MODEL_PROBE_BYTES_MAX: usize = 1 << 20;

/// Time between TERM and KILL for a command's processes.
pub(crate) const KILL_GRACE: Duration = Duration::from_millis(200);
/// Interval at which remaining processes are enumerated again while a command is ended.
pub(crate) const KILL_AGAIN: Duration = Duration::from_millis(10);
/// How long to wait for killed processes to disappear.
pub(crate) const KILL_WAIT: Duration = Duration::from_secs(2);
/// Interval at which a killed orphan is polled until it can be reaped.
pub(crate) const REAP_AGAIN: Duration = Duration::from_millis(1);
/// How long processes that a command left running may take to exit by themselves, such as a `tee`
/// that still writes. Then they are ended.
pub(crate) const LEFTOVER_GRACE: Duration = Duration::from_millis(50);
/// Open files of a command (soft `RLIMIT_NOFILE`): the usual system default. The limit of nuncio
/// itself is higher.
pub(crate) const CHILD_OPEN_FILES: u64 = 1024;
/// How long a supervisor may take to end its command on request. Then the fork server kills it.
pub(crate) const SUPERVISOR_WAIT: Duration = Duration::from_secs(1);
/// How long a caller waits for a command to end after it requested that.
pub(crate) const END_WAIT: Duration = Duration::from_secs(4);
/// How long the fork server may take to kill the processes of a supervisor, or to exit.
pub(crate) const SWEEP_WAIT: Duration = Duration::from_secs(5);
/// One request to the fork server, a command with its environment, in bytes.
pub(crate) const ORDER_BYTES_MAX: usize = 128 << 10;
/// State that a shell reports on exit, in bytes: its environment twice, and a path.
pub(crate) const HELPER_REPORT_BYTES_MAX: u64 = 512 << 10;
/// Largest file that a sandboxed command may write, in bytes (`RLIMIT_FSIZE`).
pub(crate) const SANDBOX_FILE_BYTES_MAX: u64 = 16 << 30;
/// Processes of the user while a sandboxed command runs (`RLIMIT_NPROC`).
pub(crate) const SANDBOX_PROCESSES_MAX: u64 = 16 << 10;
/// Entries that a sandboxed command may access in a directory above nuncio's private ones. The
/// others are inaccessible.
pub(crate) const SANDBOX_ENTRIES_MAX: usize = 10_000;
/// Lowest `oom_score_adj` of a command (proc(5)), so that the kernel kills commands before nuncio.
pub(crate) const COMMAND_OOM_SCORE: i32 = 500;
/// Default timeout of a shell command, in milliseconds.
pub(crate) const BASH_TIMEOUT_MS: u64 = 120_000;
/// Longest timeout of a shell command in the foreground, in milliseconds.
pub(crate) const BASH_TIMEOUT_MS_MAX: u64 = 600_000;
/// Names and values of the exported variables that a session keeps for its next command, in bytes.
pub(crate) const SHELL_EXPORTED_BYTES_MAX: usize = 32 << 10;
/// Background jobs of a session that may run concurrently.
pub(crate) const JOBS_MAX: usize = 8;
/// Background jobs that a session remembers, ended ones included.
pub(crate) const JOBS_KEPT_MAX: usize = 2 * JOBS_MAX;
/// Newest output of a background job that is kept in memory, in bytes. Its file has the rest.
pub(crate) const JOB_TAIL_BYTES_MAX: usize = 256 << 10;
/// Characters of a command in the title of its call.
pub(crate) const BASH_TITLE_CHARS_MAX: usize = 200;
/// Longest command that permission rules analyse, in bytes. A command beyond any of the limits of
/// the analysis counts as unreadable.
pub(crate) const SHELL_BYTES_MAX: usize = 64 << 10;
/// Steps of the parser for one shell command.
pub(crate) const SHELL_PARSE_STEPS_MAX: usize = 50_000;
/// Simple commands that are analysed in one shell command.
pub(crate) const SHELL_COMMANDS_MAX: usize = 500;
/// Nesting of the syntax of a shell command.
pub(crate) const SHELL_LEVELS_MAX: usize = 200;
/// Nesting of shells in a shell command, as in `sh -c`.
pub(crate) const SHELL_DEPTH_MAX: usize = 8;
/// Characters of all names under which the analysed commands are matched.
pub(crate) const SHELL_NAMES_CHARS_MAX: usize = 16 * SHELL_BYTES_MAX;
/// Output of a command that the model sees (head and tail), in bytes.
pub(crate) const BASH_MODEL_BYTES_MAX: usize = 50 << 10;
/// Output of a command that is saved to its file, in bytes.
pub(crate) const BASH_OUTPUT_BYTES_MAX: usize = 16 << 20;
/// Bytes read from a pipe at a time: its default capacity.
pub(crate) const PIPE_BYTES: usize = 64 << 10;
/// Interval at which the new output of a running command is shown.
pub(crate) const BASH_UPDATE: Duration = Duration::from_millis(100);
/// Tail of the output that is shown while a command runs, in bytes.
pub(crate) const BASH_LIVE_BYTES_MAX: usize = 8 << 10;

/// How long a client may take to read or write a file.
pub(crate) const CLIENT_FILE: Duration = Duration::from_secs(5);
/// Largest file that is requested from a client, in bytes.
pub(crate) const CLIENT_FILE_BYTES_MAX: u64 = 8 << 20;
/// How long a client may take to start or end a terminal, or to return its output.
pub(crate) const CLIENT_TERMINAL: Duration = Duration::from_secs(10);
/// Output that a client's terminal keeps, in bytes.
pub(crate) const CLIENT_TERMINAL_BYTES_MAX: u64 = 4 << 20;

/// Timeout of a git command that only reads.
pub(crate) const GIT_READ: Duration = Duration::from_secs(30);
/// Timeout of a git command that changes the repository, hooks included.
pub(crate) const GIT_CHANGE: Duration = Duration::from_secs(120);
/// Timeout of one git command that undoes a failed change.
pub(crate) const GIT_UNDO: Duration = Duration::from_secs(10);
/// Paths on the command line of one git command, in bytes.
pub(crate) const GIT_PATHS_BYTES_MAX: usize = 64 << 10;
/// Output of one git command, in bytes.
pub(crate) const GIT_OUTPUT_BYTES_MAX: usize = 4 << 20;
/// Bytes of git's error output that are reported on failure.
pub(crate) const GIT_ERROR_BYTES_MAX: usize = 4 << 10;
/// Files or branches in the result of a git tool.
pub(crate) const GIT_ENTRIES_MAX: usize = 500;
/// Commits of one `git_log`.
pub(crate) const GIT_LOG_MAX: u64 = 200;
/// Text of one `git_diff`, in bytes.
pub(crate) const GIT_DIFF_BYTES_MAX: usize = 50 << 10;

/// Time to fetch a page, redirects included.
pub(crate) const FETCH: Duration = Duration::from_secs(30);
/// Time to connect to the host of a page.
pub(crate) const FETCH_CONNECT: Duration = Duration::from_secs(10);
/// Redirects that `fetch` follows.
pub(crate) const FETCH_REDIRECTS_MAX: usize = 10;
/// Bytes of a page that are fetched.
pub(crate) const FETCH_BYTES_MAX: usize = 5 << 20;
/// Text of a page that the model sees, in bytes.
pub(crate) const FETCH_TEXT_BYTES_MAX: usize = 50 << 10;
/// Text of an error page that the model sees, in bytes.
pub(crate) const FETCH_ERROR_BYTES_MAX: usize = 500;
/// Nested HTML elements. A page beyond that is not converted to Markdown.
pub(crate) const HTML_DEPTH_MAX: usize = 200;

/// Source of a diagram, in bytes. The time of the layout grows faster than the diagram, hence
/// these limits.
pub(crate) const DIAGRAM_SOURCE_BYTES_MAX: usize = 64 << 10;
/// Nodes of a diagram.
pub(crate) const DIAGRAM_NODES_MAX: usize = 200;
/// Edges of a diagram.
pub(crate) const DIAGRAM_EDGES_MAX: usize = 400;
/// Nested subgraphs, or nested fields of a record, in a diagram.
pub(crate) const DIAGRAM_DEPTH_MAX: usize = 20;
/// Nodes of the layout: those of the diagram and the connectors of its edges.
pub(crate) const DIAGRAM_ELEMENTS_MAX: usize = 600;

/// Default size of a `repo_map`, in tokens.
pub(crate) const MAP_TOKENS: usize = 2_000;
/// Largest `repo_map`, in tokens.
pub(crate) const MAP_TOKENS_MAX: usize = 20_000;
/// Estimated bytes of a token.
pub(crate) const BYTES_PER_TOKEN: usize = 4;
/// Source files that a `repo_map` reads.
pub(crate) const MAP_FILES_MAX: usize = 20_000;
/// Largest source file that a `repo_map` reads, in bytes.
pub(crate) const MAP_FILE_BYTES_MAX: u64 = 512 << 10;
/// Time to parse one file for a `repo_map`.
pub(crate) const MAP_FILE_TIME: Duration = Duration::from_secs(5);
/// Time to read all files of a `repo_map`.
pub(crate) const MAP_TIME: Duration = Duration::from_secs(30);
/// Definitions of one file in a `repo_map`.
pub(crate) const MAP_DEFINITIONS_MAX: usize = 2_000;
/// Concurrently open matches of a tree-sitter query.
pub(crate) const MAP_MATCHES_MAX: u32 = 4_096;
/// Signature in a `repo_map`, in bytes.
pub(crate) const MAP_SIGNATURE_BYTES_MAX: usize = 160;
/// Rank of a definition within its file, by score, at which its score is halved.
pub(crate) const MAP_FILE_EVEN: f64 = 10.0;
/// Cached definitions of source files over all sessions, in bytes.
pub(crate) const MAP_CACHE_BYTES_MAX: usize = 64 << 20;

/// Lines of one `read`.
pub(crate) const READ_LINES_MAX: usize = 5_000;
/// Bytes of one line that `read` returns.
pub(crate) const READ_LINE_BYTES_MAX: usize = 8 << 10;
/// Result of one `read`, in bytes.
pub(crate) const READ_BYTES_MAX: usize = 1 << 20;
/// Bytes at the start of a file that are searched for NUL, which marks it as binary.
pub(crate) const BINARY_PROBE_BYTES: usize = 8 << 10;
/// Largest image that a model receives, in bytes.
pub(crate) const IMAGE_BYTES_MAX: usize = 5 << 20;
/// Largest file that `edit` changes, in bytes.
pub(crate) const EDIT_BYTES_MAX: u64 = 64 << 20;
/// Steps of the comparison of blocks in `edit`; a step is a line or 64 pairs of bytes.
pub(crate) const EDIT_COMPARE_STEPS_MAX: usize = 16 << 20;
/// Candidate blocks that `edit` distinguishes.
pub(crate) const EDIT_PLACES_MAX: usize = 1_000;
/// Largest file that is searched for the text most similar to one that was not found, in bytes.
pub(crate) const EDIT_NEAREST_BYTES_MAX: usize = 4 << 20;
/// Text of one side of a diff, in bytes. Larger files are shown without their text.
pub(crate) const DIFF_TEXT_BYTES_MAX: usize = 256 << 10;
/// Time to compute a minimal diff. Then a coarser one is used.
pub(crate) const DIFF_TIME: Duration = Duration::from_millis(100);
/// Paths that `glob` returns.
pub(crate) const GLOB_PATHS_MAX: usize = 200;
/// Entries that `list` shows.
pub(crate) const LIST_ENTRIES_MAX: usize = 500;
/// Lines that `grep` shows.
pub(crate) const GREP_LINES_MAX: usize = 250;
/// Memory of `grep` for one line, or with `multiline` for one file, in bytes. Longer ones are
/// skipped.
pub(crate) const GREP_HEAP_BYTES_MAX: usize = 64 << 20;
/// Bytes of one line that `grep` shows.
pub(crate) const GREP_LINE_BYTES_MAX: usize = 500;

/// Restarts of a language server that crashes. Then it stays off.
pub(crate) const LSP_RESTARTS_MAX: u32 = 3;
/// Language servers that may run concurrently.
pub const LSP_SERVERS_MAX: usize = 8;
/// Time for a language server to initialize.
pub(crate) const LSP_START: Duration = Duration::from_secs(60);
/// Time for a language server to shut down.
pub(crate) const LSP_GOODBYE: Duration = Duration::from_millis(500);
/// How long an edit waits for diagnostics.
pub(crate) const LSP_EDIT_WAIT: Duration = Duration::from_secs(2);
/// How long the `diagnostics` tool waits for diagnostics.
pub(crate) const LSP_ASK_WAIT: Duration = Duration::from_secs(10);
/// Silence of a language server after which its diagnostics count as complete.
pub(crate) const LSP_QUIET: Duration = Duration::from_millis(250);
/// Header of a language server's message, in bytes.
pub const LSP_HEADER_BYTES_MAX: usize = 4 << 10;
/// Body of a language server's message, in bytes.
pub const LSP_MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Messages that wait to be sent to one language server.
pub(crate) const LSP_MESSAGES_QUEUED_MAX: usize = 64;
/// Largest file that is sent to a language server, in bytes.
pub(crate) const LSP_DOCUMENT_BYTES_MAX: u64 = 1 << 20;
/// Documents that are open in one language server.
pub(crate) const LSP_DOCUMENTS_OPEN_MAX: usize = 16;
/// Files of one tool call that are checked for diagnostics.
pub(crate) const LSP_CALL_FILES_MAX: usize = 10;
/// Files whose diagnostics are kept.
pub(crate) const LSP_FILES_MAX: usize = 500;
/// Diagnostics that are kept for one file.
pub(crate) const LSP_FILE_DIAGNOSTICS_MAX: usize = 100;
/// Diagnostics that are shown at once.
pub(crate) const LSP_SHOWN_MAX: usize = 20;
/// Concurrent progress reports that are tracked for one language server.
pub(crate) const LSP_WORKS_MAX: usize = 64;
/// Characters of a diagnostic's message.
pub(crate) const LSP_MESSAGE_CHARS_MAX: usize = 500;

/// How long an unused session stays open in a server.
pub(crate) const SESSION_IDLE: Duration = Duration::from_secs(3600);
/// Interval at which a server looks for unused sessions.
pub(crate) const SESSION_IDLE_LOOK: Duration = Duration::from_secs(60);
/// How long opening a session at the limit waits for another session to become unused.
pub(crate) const CAPACITY_WAIT: Duration = Duration::from_millis(100);
/// Shortest pause between two reads of a client that follows all sessions.
pub(crate) const FOLLOW_ALL_PAUSE: Duration = Duration::from_millis(10);
/// Attachments that one message embeds, all together, in bytes.
pub(crate) const MESSAGE_ATTACHMENTS_BYTES_MAX: usize = 20 << 20;
/// How long the deletion event of a session is kept for clients that follow all sessions.
pub(crate) const DELETED_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Connections of the HTTP server, or half of the open files if those are fewer. At the limit, the
/// oldest connection that has not authenticated is closed, or else the new one.
pub(crate) const CONNECTIONS_MAX: usize = 4096;
/// Connections that have not authenticated and are closed together when the server runs out of
/// files.
pub(crate) const CONNECTIONS_CLOSED: usize = 64;
/// Pause after a connection could not be accepted, for example because no files are left.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// Time to receive the head of a request, including the next request of an idle connection.
pub(crate) const HTTP_HEAD: Duration = Duration::from_secs(30);
/// Request line and headers of a request, in bytes.
pub(crate) const HTTP_HEAD_BYTES_MAX: usize = 64 << 10;
/// Read buffer of a connection, in bytes.
pub(crate) const HTTP_BUFFER_BYTES: usize = 64 << 10;
/// Time to receive the body of a request.
pub(crate) const HTTP_BODY: Duration = Duration::from_secs(30);
/// Body of a request, in bytes: large enough for an attachment in base64.
pub(crate) const HTTP_BODY_BYTES_MAX: usize = 16 << 20;
/// Characters of an unrouted path in the log.
pub(crate) const LOG_PATH_CHARS_MAX: usize = 200;
/// Characters of an unknown field's name that are compared with the known names.
pub(crate) const FIELD_NAME_CHARS_MAX: usize = 64;
/// Values in the JSON of a request body.
pub(crate) const HTTP_BODY_VALUES_MAX: usize = 1_000_000;
/// Interval at which the token of a stream is validated again.
pub(crate) const TOKEN_AGAIN: Duration = Duration::from_secs(1);
/// Largest body that does not count towards [`HTTP_BODIES_BYTES_MAX`], in bytes.
pub(crate) const HTTP_BODY_BYTES_SMALL: u64 = 16 << 10;
/// Request bodies that are received concurrently, all together, in bytes.
pub(crate) const HTTP_BODIES_BYTES_MAX: usize = 64 << 20;
/// Calls of one batch on `/rpc`.
pub(crate) const RPC_BATCH_MAX: u32 = 100;
/// Outgoing messages that one connection of `/rpc` buffers.
pub(crate) const RPC_MESSAGES_QUEUED_MAX: usize = 8;
/// Calls of one socket that run or whose responses are not sent yet.
pub(crate) const RPC_CALLS_MAX: usize = 32;
/// Messages of one socket that are handled concurrently. Further ones are not read.
pub(crate) const RPC_MESSAGES_MAX: usize = 2 * RPC_CALLS_MAX + RPC_MESSAGES_QUEUED_MAX;
/// Read-only calls of one socket that run concurrently.
pub(crate) const RPC_READS_MAX: usize = 4;
/// Params of the running calls of one socket, in bytes.
pub(crate) const RPC_PARAMS_BYTES_MAX: usize = 2 * HTTP_BODY_BYTES_MAX;
/// Unread responses over all sockets, in bytes.
pub(crate) const RPC_UNREAD_BYTES_MAX: usize = 256 << 20;
/// Subscriptions of one socket.
pub(crate) const RPC_SUBSCRIPTIONS_MAX: usize = 32;
/// Interval of heartbeats on an idle stream.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long connections may take to close after the turns ended at shutdown.
pub(crate) const HTTP_GOODBYE: Duration = Duration::from_secs(2);
/// Responses that are stored for repeated requests (`Idempotency-Key`).
pub(crate) const IDEMPOTENCY_KEYS_MAX: usize = 10_000;
/// How long a response is stored for repeated requests.
pub(crate) const IDEMPOTENCY_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Characters of an `Idempotency-Key`.
pub(crate) const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;
/// Failed logins in a burst. Further ones are rejected as `rate_limited`.
pub(crate) const LOGIN_FAILURES_MAX: f64 = 20.0;
/// Failed logins that are permitted again, per second.
pub(crate) const LOGIN_FAILURES_PER_S: f64 = 2.0;
/// Shortest token that a token file may contain, in characters.
pub(crate) const TOKEN_CHARS_MIN: usize = 32;
/// Longest name of a token, in characters.
pub(crate) const TOKEN_NAME_CHARS_MAX: usize = 64;

/// How long a trace collector may take to accept spans.
pub const TRACES_SENT: Duration = Duration::from_secs(2);

/// Largest file that nuncio reads for itself, in bytes: settings, prompts, ignore files, files in
/// a repository's `.git`.
pub(crate) const OWN_FILE_BYTES_MAX: u64 = 1 << 20;
/// Searches of directory trees that a process runs concurrently. Further ones wait.
pub(crate) const WALKS_MAX: usize = 8;
/// Rules of the ignore files of a directory and its ancestors; further rules are skipped.
pub const IGNORE_RULES_MAX: usize = 20_000;
/// Threads of one search.
pub(crate) const WALK_THREADS_MAX: usize = 12;
/// One instruction file, in bytes.
pub(crate) const INSTRUCTION_BYTES_MAX: usize = 32 << 10;
/// All instruction files together, in bytes.
pub(crate) const INSTRUCTIONS_BYTES_MAX: usize = 64 << 10;
/// Timeout of an `api_key_command`.
pub(crate) const KEY_COMMAND: Duration = Duration::from_secs(10);

/// How long running turns may take to end after end of input or a signal.
pub(crate) const DRAIN: Duration = Duration::from_secs(3);
/// Sessions of one `session/list` page.
pub(crate) const SESSIONS_PAGE: usize = 50;
/// Default number of messages or turns of a page.
pub(crate) const LIST_PAGE: usize = 50;
/// Largest number of messages or turns of a page.
pub(crate) const LIST_PAGE_MAX: usize = 200;
/// Pages of events that are read to fill a page of messages that is not empty.
pub(crate) const MESSAGES_PAGES_MAX: usize = 4;
/// Content of one attachment, in bytes.
pub(crate) const ATTACHMENT_BYTES_MAX: usize = 10 << 20;
/// Name of an attachment's file, in bytes.
pub(crate) const FILE_NAME_BYTES_MAX: usize = 255;
/// Pages of [`SESSIONS_PAGE`] that are searched for sessions visible to a client.
pub(crate) const SESSIONS_PAGES_MAX: usize = 40;
/// Characters of a title derived from the first prompt.
pub(crate) const TITLE_CHARS_MAX: usize = 80;
/// Nested elements that are unwrapped to find a title.
pub(crate) const TITLE_DEPTH_MAX: usize = 8;
/// Longest JSON Lines record of `run --json -` and `sessions import`, and longest prompt on
/// standard input, in bytes.
pub(crate) const INPUT_LINE_BYTES_MAX: usize = FRAME_BYTES_MAX;
/// How long `run` waits for the end of standard input before it prints a notice.
pub(crate) const INPUT_NOTICE: Duration = Duration::from_secs(2);
/// How long `run` waits for input if standard input is a silent socket. Then it uses the prompt it
/// has.
pub(crate) const INPUT_SOCKET: Duration = Duration::from_secs(3);
/// How long `doctor` waits for the first event of a model.
pub(crate) const DOCTOR_MODEL: Duration = Duration::from_secs(30);
/// Output of an `api_key_command`, in bytes.
pub(crate) const KEY_BYTES_MAX: usize = 16 << 10;
/// Threads for blocking work: files and the store.
pub(crate) const BLOCKING_THREADS_MAX: usize = 32;
