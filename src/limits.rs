//! Every bound in one place: queues, sizes, times and counts. Units come last in a name.

use std::time::Duration;

/// Longest line accepted on the stdio door.
pub const FRAME_BYTES_MAX: usize = 32 << 20;
/// Requests of one connection that may be running at once; more are answered `overloaded`.
pub const REQUESTS_RUNNING_MAX: usize = 1024;
/// How long a client may leave unread what is there for it; then it is taken to be gone.
pub const STALLED: Duration = Duration::from_secs(60);
/// Replies waiting for the outbox of one connection.
pub const REPLIES_QUEUED_MAX: usize = 1024;
/// Events a cursor reads at a time; bounds how long a reply waits behind somebody else's events.
pub const PAGE_EVENTS: usize = 256;
/// Bytes after which a page of events takes no more.
pub const PAGE_BYTES_MAX: usize = 4 << 20;

/// Events waiting for the log's writer, all sessions together.
pub const APPENDS_QUEUED_MAX: usize = 4096;
/// Events that one transaction takes.
pub const BATCH_EVENTS_MAX: usize = 512;
/// Events of a session kept in memory for those who follow it closely.
pub const TAIL_EVENTS_MAX: usize = 512;
/// The same in bytes of text.
pub const TAIL_BYTES_MAX: usize = 256 << 10;
/// How often another process's writes are looked for while somebody follows its session.
pub const FOREIGN_POLL: Duration = Duration::from_millis(50);
/// At every such look it is seen, too, whether the owner of a foreign session that works still lives.
pub const FOREIGN_ORPHANS: u64 = 20;
/// How long a write waits for another process's transaction.
pub const STORE_BUSY: Duration = Duration::from_secs(5);

/// How long writes are retried while another process locks the store; then they are lost.
pub const STORE_LOCKED_MAX: Duration = Duration::from_secs(15);
/// Pause between two attempts to write to a locked store.
pub const STORE_RETRY: Duration = Duration::from_millis(50);
/// Pause between two attempts to go on with a session whose log was lost.
pub const STORE_RECOVERY: Duration = Duration::from_millis(500);

/// How long artifacts are kept after the last event of their session.
pub const ARTIFACTS_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// Artifacts that a closed session keeps; the oldest beyond that are removed.
pub const ARTIFACTS_BYTES_MAX: u64 = 256 << 20;

/// Model requests in one turn; then the turn stops with `max_turn_requests`.
pub const TURN_REQUESTS_MAX: u32 = 200;
/// Messages of a session that wait for its turn; more are answered `overloaded`.
pub const QUEUED_MESSAGES_MAX: usize = 64;
/// Prompts of a session that wait for their turn; more are answered `session_busy`.
pub const PROMPTS_WAITING_MAX: usize = 16;
/// Attempts at one model request.
pub const MODEL_ATTEMPTS_MAX: u32 = 8;
/// The same when nobody listens at an address of this machine.
pub const MODEL_LOCAL_ATTEMPTS_MAX: u32 = 3;
/// First pause between attempts; it doubles.
pub const MODEL_BACKOFF: Duration = Duration::from_millis(100);
/// Longest pause between attempts, and the longest Retry-After that is obeyed.
pub const MODEL_BACKOFF_MAX: Duration = Duration::from_secs(60);
/// Silence on a model's stream after which it counts as broken.
pub const MODEL_IDLE: Duration = Duration::from_secs(180);
/// The same for a server on this machine, which may chew on a long prompt before it says anything.
pub const MODEL_LOCAL_IDLE: Duration = Duration::from_secs(900);
/// Most that is added to a pause by chance, so that many who failed together do not come back together.
pub const MODEL_JITTER: Duration = Duration::from_millis(20);
/// How long an idle connection to a model's host is kept.
pub const MODEL_KEEP_ALIVE: Duration = Duration::from_secs(90);
/// Time to connect to a model's host.
pub const MODEL_CONNECT: Duration = Duration::from_secs(15);
/// One server-sent event of a model.
pub const MODEL_EVENT_BYTES_MAX: usize = 16 << 20;
/// Body of a model's error answer that is read for its message.
pub const MODEL_ERROR_BYTES_MAX: usize = 64 << 10;
/// Characters of a model's error answer that are shown.
pub const MODEL_ERROR_CHARS_MAX: usize = 1000;
/// Text, thinking, arguments and provider state of one answer, all together.
pub const MODEL_ANSWER_BYTES_MAX: usize = 8 << 20;
/// Tool calls of one answer.
pub const MODEL_ANSWER_CALLS_MAX: usize = 256;
/// Blocks of text and of thinking in one answer.
pub const MODEL_ANSWER_BLOCKS_MAX: usize = 1024;
/// Bytes received for one answer, with all that is not part of it.
pub const MODEL_STREAM_BYTES_MAX: usize = 512 << 20;
/// Size of a scripted model's file.
pub const SCRIPT_BYTES_MAX: u64 = 16 << 20;
/// Looking for local model servers, all together.
pub const MODEL_PROBE: Duration = Duration::from_millis(300);
/// Size of an answer that identifies a local model server.
pub const MODEL_PROBE_BYTES_MAX: usize = 1 << 20;

/// Time between TERM and KILL for a command's processes.
pub const KILL_GRACE: Duration = Duration::from_millis(200);
/// How often what is left is looked for again while processes are ended, and how long we wait for that at all.
pub const KILL_AGAIN: Duration = Duration::from_millis(10);
pub const KILL_WAIT: Duration = Duration::from_secs(2);
/// How often an orphan that was killed is looked at until it can be reaped.
pub const REAP_AGAIN: Duration = Duration::from_millis(1);
/// How long what a command left running may take to end by itself (a `tee` that still writes); then it is ended.
pub const LEFTOVER_GRACE: Duration = Duration::from_millis(50);
/// Open files (RLIMIT_NOFILE, soft) of a command: what systems begin with; ours is higher.
pub const CHILD_OPEN_FILES: u64 = 1024;
/// How long a supervisor may take to end its command when it is told to; then the fork server does it.
pub const SUPERVISOR_WAIT: Duration = Duration::from_secs(1);
/// How long whoever ended a command waits for that.
pub const END_WAIT: Duration = Duration::from_secs(4);
/// How long the fork server may take to kill what a supervisor left, or to end itself.
pub const SWEEP_WAIT: Duration = Duration::from_secs(5);
/// One order to the fork server: a command with its environment.
pub const ORDER_BYTES_MAX: usize = 128 << 10;
/// What a shell leaves when it ended: its environment twice, and a path.
pub const HELPER_REPORT_BYTES_MAX: u64 = 512 << 10;
/// Largest file that a confined command writes, and how many processes its user may have then.
pub const SANDBOX_FILE_BYTES_MAX: u64 = 16 << 30;
pub const SANDBOX_PROCESSES_MAX: u64 = 16 << 10;
/// Entries of a directory above nuncio's own ones that a confined command may read; the others it may not.
pub const SANDBOX_ENTRIES_MAX: usize = 10_000;
/// What commands add at least to the score by which the kernel chooses whom to end when memory ends (proc(5), oom_score_adj).
pub const COMMAND_OOM_SCORE: i32 = 500;
/// Default and longest time of a shell command.
pub const BASH_TIMEOUT_MS: u64 = 120_000;
pub const BASH_TIMEOUT_MS_MAX: u64 = 600_000;
/// What the commands of a session exported, names and values, that is kept for the next.
pub const SHELL_EXPORTED_BYTES_MAX: usize = 32 << 10;
/// Background jobs of a session that run, and that are remembered with the ended ones.
pub const JOBS_MAX: usize = 8;
pub const JOBS_KEPT_MAX: usize = 2 * JOBS_MAX;
/// Output of a job that is held for its readers; more is in its file.
pub const JOB_TAIL_BYTES_MAX: usize = 256 << 10;
/// Characters of a command in its call's title.
pub const BASH_TITLE_CHARS_MAX: usize = 200;
/// What of a command rules look at: bytes, rounds of the parser, commands, parts within parts, shells within shells. What is beyond
/// counts as a command that cannot be read.
pub const SHELL_BYTES_MAX: usize = 64 << 10;
pub const SHELL_PARSE_STEPS_MAX: usize = 50_000;
pub const SHELL_COMMANDS_MAX: usize = 500;
pub const SHELL_LEVELS_MAX: usize = 200;
pub const SHELL_DEPTH_MAX: usize = 8;
/// The same: characters of the names by which commands are known.
pub const SHELL_NAMES_CHARS_MAX: usize = 16 * SHELL_BYTES_MAX;
/// Output of a command that the model sees (head and tail), and that is kept at all.
pub const BASH_MODEL_BYTES_MAX: usize = 50 << 10;
pub const BASH_OUTPUT_BYTES_MAX: usize = 16 << 20;
/// Output that is read at a time: what a pipe holds.
pub const PIPE_BYTES: usize = 64 << 10;
/// How often a running command's new output is shown.
pub const BASH_UPDATE: Duration = Duration::from_millis(100);
/// Output shown while a command still runs (its tail).
pub const BASH_LIVE_BYTES_MAX: usize = 8 << 10;

/// How long a client may take for a file, and the largest that it is asked for.
pub const CLIENT_FILE: Duration = Duration::from_secs(5);
pub const CLIENT_FILE_BYTES_MAX: u64 = 8 << 20;
/// How long a client may take to start or end a terminal, or to tell its output.
pub const CLIENT_TERMINAL: Duration = Duration::from_secs(10);
/// Output of a command that a client's terminal keeps.
pub const CLIENT_TERMINAL_BYTES_MAX: u64 = 4 << 20;

/// How long git may take to look at a repository, and to change one with its hooks.
pub const GIT_READ: Duration = Duration::from_secs(30);
pub const GIT_CHANGE: Duration = Duration::from_secs(120);
/// How long it may take to take back a part of what a call that failed did; and paths of a part.
pub const GIT_UNDO: Duration = Duration::from_secs(10);
pub const GIT_PATHS_BYTES_MAX: usize = 64 << 10;
/// What one run of git may print, and how much of it is told when it fails.
pub const GIT_OUTPUT_BYTES_MAX: usize = 4 << 20;
pub const GIT_ERROR_BYTES_MAX: usize = 4 << 10;
/// Files or branches that a git tool tells of, commits of one `git_log`, and text of one `git_diff`.
pub const GIT_ENTRIES_MAX: usize = 500;
pub const GIT_LOG_MAX: u64 = 200;
pub const GIT_DIFF_BYTES_MAX: usize = 50 << 10;

/// Time for a page, with all its redirections, and of it to connect.
pub const FETCH: Duration = Duration::from_secs(30);
pub const FETCH_CONNECT: Duration = Duration::from_secs(10);
/// Redirections that `fetch` follows.
pub const FETCH_REDIRECTS_MAX: usize = 10;
/// Bytes of a page that are fetched, of its text that the model sees, and of one that says what went wrong.
pub const FETCH_BYTES_MAX: usize = 5 << 20;
pub const FETCH_TEXT_BYTES_MAX: usize = 50 << 10;
pub const FETCH_ERROR_BYTES_MAX: usize = 500;
/// Elements of a page inside each other; deeper ones are not made into markdown.
pub const HTML_DEPTH_MAX: usize = 200;

/// Source of a diagram, its nodes and edges, subgraphs or fields inside each other, and nodes with all that edges need besides: how long the layout
/// takes grows faster than they do.
pub const DIAGRAM_SOURCE_BYTES_MAX: usize = 64 << 10;
pub const DIAGRAM_NODES_MAX: usize = 200;
pub const DIAGRAM_EDGES_MAX: usize = 400;
pub const DIAGRAM_DEPTH_MAX: usize = 20;
pub const DIAGRAM_ELEMENTS_MAX: usize = 600;

/// Tokens of a `repo_map`, when the caller says nothing, and at most; and how many bytes one is, about.
pub const MAP_TOKENS: usize = 2_000;
pub const MAP_TOKENS_MAX: usize = 20_000;
pub const BYTES_PER_TOKEN: usize = 4;
/// Source files of a map, bytes of one, time for one and for all.
pub const MAP_FILES_MAX: usize = 20_000;
pub const MAP_FILE_BYTES_MAX: u64 = 512 << 10;
pub const MAP_FILE_TIME: Duration = Duration::from_secs(5);
pub const MAP_TIME: Duration = Duration::from_secs(30);
/// Definitions of a file, matches of a query that are open at once, and bytes of a signature.
pub const MAP_DEFINITIONS_MAX: usize = 2_000;
pub const MAP_MATCHES_MAX: u32 = 4_096;
pub const MAP_SIGNATURE_BYTES_MAX: usize = 160;
/// The definition of a file, in the order of what they are worth, that counts half.
pub const MAP_FILE_EVEN: f64 = 10.0;
/// What is kept of files that were read, over all sessions.
pub const MAP_CACHE_BYTES_MAX: usize = 64 << 20;

/// Lines of one `read`, and the bytes of one line and of the whole.
pub const READ_LINES_MAX: usize = 5_000;
pub const READ_LINE_BYTES_MAX: usize = 8 << 10;
pub const READ_BYTES_MAX: usize = 1 << 20;
/// First bytes of a file that are looked at for a NUL.
pub const BINARY_PROBE_BYTES: usize = 8 << 10;
/// Largest image handed to a model.
pub const IMAGE_BYTES_MAX: usize = 5 << 20;
/// Largest file that `edit` takes.
pub const EDIT_BYTES_MAX: u64 = 64 << 20;
/// Steps that comparing blocks may take, of a line or 64 pairs of bytes each; and blocks that are told apart.
pub const EDIT_COMPARE_STEPS_MAX: usize = 16 << 20;
pub const EDIT_PLACES_MAX: usize = 1_000;
/// Files up to this size are searched for what is most like something that was not found.
pub const EDIT_NEAREST_BYTES_MAX: usize = 4 << 20;
/// Text of one side of a diff that is shown; larger ones are shown without their text.
pub const DIFF_TEXT_BYTES_MAX: usize = 256 << 10;
/// Time for a diff to be a good one; then a coarser one is taken.
pub const DIFF_TIME: Duration = Duration::from_millis(100);
/// Paths that `glob` returns, entries that `list` shows, lines that `grep` shows.
pub const GLOB_PATHS_MAX: usize = 200;
pub const LIST_ENTRIES_MAX: usize = 500;
pub const GREP_LINES_MAX: usize = 250;
/// Memory that `grep` takes for a line, or with `multiline` for a file; what is longer is left out.
pub const GREP_HEAP_BYTES_MAX: usize = 64 << 20;
/// One line of a `grep` result.
pub const GREP_LINE_BYTES_MAX: usize = 500;

/// Restarts of a language server that crashes; then it is given up. And servers that run at once.
pub const LSP_RESTARTS_MAX: u32 = 3;
pub const LSP_SERVERS_MAX: usize = 8;
/// Time to start, and to say goodbye.
pub const LSP_START: Duration = Duration::from_secs(60);
pub const LSP_GOODBYE: Duration = Duration::from_millis(500);
/// How long diagnostics are waited for after an edit, and when they are asked for; and the silence after which they are whole.
pub const LSP_EDIT_WAIT: Duration = Duration::from_secs(2);
pub const LSP_ASK_WAIT: Duration = Duration::from_secs(10);
pub const LSP_QUIET: Duration = Duration::from_millis(250);
/// Header and body of a language server's message; messages that wait to be read by one.
pub const LSP_HEADER_BYTES_MAX: usize = 4 << 10;
pub const LSP_MESSAGE_BYTES_MAX: usize = 16 << 20;
pub const LSP_MESSAGES_QUEUED_MAX: usize = 64;
/// Largest file that is shown to a language server; files that one holds open; files of one call that are checked.
pub const LSP_DOCUMENT_BYTES_MAX: u64 = 1 << 20;
pub const LSP_DOCUMENTS_OPEN_MAX: usize = 16;
pub const LSP_CALL_FILES_MAX: usize = 10;
/// Files whose diagnostics are kept, diagnostics of each, and those that are shown at once.
pub const LSP_FILES_MAX: usize = 500;
pub const LSP_FILE_DIAGNOSTICS_MAX: usize = 100;
pub const LSP_SHOWN_MAX: usize = 20;
/// Works that one server is known to have under way.
pub const LSP_WORKS_MAX: usize = 64;
/// Characters of a diagnostic's message.
pub const LSP_MESSAGE_CHARS_MAX: usize = 500;

/// How long a session that nobody uses stays open in a server, and how often that is looked at.
pub const SESSION_IDLE: Duration = Duration::from_secs(3600);
pub const SESSION_IDLE_LOOK: Duration = Duration::from_secs(60);
/// How often it is looked for a session that makes room for another, and the pause between.
pub const ROOM_LOOKS: u32 = 20;
pub const ROOM_LOOK: Duration = Duration::from_millis(5);
/// Least time between two reads of one who follows all sessions.
pub const FOLLOW_ALL_PAUSE: Duration = Duration::from_millis(10);
/// What attachments that one message names may add to it, all together.
pub const MESSAGE_ATTACHMENTS_BYTES_MAX: usize = 20 << 20;
/// How long a deleted session's last event is kept for those who follow all sessions.
pub const DELETED_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Connections of the HTTP server, or half of the open files if those are fewer. One more closes
/// the oldest connection that has not authenticated; where there is none, it is closed itself.
pub const CONNECTIONS_MAX: usize = 4096;
/// Connections that have not authenticated and are closed together when no file is left for another
/// one.
pub const CONNECTIONS_CLOSED: usize = 64;
/// Pause after a connection could not be accepted, as when there are no files left.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// Time for the head of a request, also of the next one on an idle connection.
pub const HTTP_HEAD: Duration = Duration::from_secs(30);
/// Longest head of a request: its line and its headers.
pub const HTTP_HEAD_BYTES_MAX: usize = 64 << 10;
/// Buffer of a connection.
pub const HTTP_BUFFER_BYTES: usize = 64 << 10;
/// Time for a request's body.
pub const HTTP_BODY: Duration = Duration::from_secs(30);
/// Largest body of a request: an attachment in base64.
pub const HTTP_BODY_BYTES_MAX: usize = 16 << 20;
/// Characters of a path that nobody routed, in the log.
pub const LOG_PATH_CHARS_MAX: usize = 200;
/// Characters of an unknown field's name that are compared with the known ones.
pub const FIELD_NAME_CHARS_MAX: usize = 64;
/// Values in the JSON of a body.
pub const HTTP_BODY_VALUES_MAX: usize = 1_000_000;
/// How often it is looked whether the token of a stream still counts.
pub const TOKEN_AGAIN: Duration = Duration::from_secs(1);
/// Bodies up to this size do not count among those that are being read; and what those may take, all together.
pub const HTTP_BODY_BYTES_SMALL: u64 = 16 << 10;
pub const HTTP_BODIES_BYTES_MAX: usize = 64 << 20;
/// Calls of one batch of `/rpc`, and messages of one of its connections that wait to be sent.
pub const RPC_BATCH_MAX: u32 = 100;
pub const RPC_MESSAGES_QUEUED_MAX: u32 = 8;
/// Calls of one socket that run or whose answers have not left; how many of them only read; and what their params may take.
pub const RPC_CALLS_MAX: usize = 32;
pub const RPC_READS_MAX: usize = 4;
pub const RPC_PARAMS_BYTES_MAX: usize = 2 * HTTP_BODY_BYTES_MAX;
/// What answers that were not read yet may take, over all sockets.
pub const RPC_UNREAD_BYTES_MAX: usize = 256 << 20;
/// Subscriptions of one socket.
pub const RPC_SUBSCRIPTIONS_MAX: u32 = 32;
/// How often a stream that has nothing to say shows that it lives.
pub const HEARTBEAT: Duration = Duration::from_secs(15);
/// After the turns ended: how long connections may take to say their last words.
pub const HTTP_GOODBYE: Duration = Duration::from_secs(2);
/// Answers kept for repeated requests (Idempotency-Key), and for how long.
pub const IDEMPOTENCY_KEYS_MAX: usize = 10_000;
pub const IDEMPOTENCY_KEPT: Duration = Duration::from_secs(24 * 3600);
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;
/// Failed logins that are answered at once, and how many more each second.
pub const LOGIN_FAILURES_MAX: f64 = 20.0;
pub const LOGIN_FAILURES_PER_S: f64 = 2.0;
/// Shortest token of a file, and longest name of a token.
pub const TOKEN_CHARS_MIN: usize = 32;
pub const TOKEN_NAME_CHARS_MAX: usize = 64;

/// How long a collector of traces may take.
pub const TRACES_SENT: Duration = Duration::from_secs(2);

/// Largest file that nuncio reads by itself: settings, prompts, ignore files of git, files of a repository's `.git`.
pub const OWN_FILE_BYTES_MAX: u64 = 1 << 20;
/// Searches of directory trees that run at once in a process, and threads of each; more searches wait.
pub const WALKS_MAX: usize = 8;
pub const WALK_THREADS_MAX: usize = 12;
/// Bytes of one instruction file, and of all together.
pub const INSTRUCTION_BYTES_MAX: usize = 32 << 10;
pub const INSTRUCTIONS_BYTES_MAX: usize = 64 << 10;
/// Answer of an `api_key_command`.
pub const KEY_COMMAND: Duration = Duration::from_secs(10);

/// After the input ended or a signal came: how long running turns may take to end.
pub const DRAIN: Duration = Duration::from_secs(3);
/// Sessions of one `session/list` page.
pub const SESSIONS_PAGE: usize = 50;
/// Messages or turns of a page, when the caller says nothing, and at most.
pub const LIST_PAGE: usize = 50;
pub const LIST_PAGE_MAX: usize = 200;
/// Pages of facts in which a page of messages looks for more once it has one.
pub const MESSAGES_PAGES_MAX: usize = 4;
/// Content of one attachment, and the name of a file.
pub const ATTACHMENT_BYTES_MAX: usize = 10 << 20;
pub const FILE_NAME_BYTES_MAX: usize = 255;
/// Such pages that are looked through for sessions that a client may see.
pub const SESSIONS_PAGES_MAX: usize = 40;
/// Characters of a title made from the first prompt.
pub const TITLE_CHARS_MAX: usize = 80;
/// Elements inside each other that are opened in search of a title.
pub const TITLE_DEPTH_MAX: usize = 8;
/// Longest JSON Lines record that `run --json -` and `sessions import` take, and longest prompt on standard input.
pub const INPUT_LINE_BYTES_MAX: usize = FRAME_BYTES_MAX;
/// How long standard input may take to end before `run` says that it waits for it.
pub const INPUT_NOTICE: Duration = Duration::from_secs(2);
/// How long a socket as standard input may stay silent before `run` goes on with the prompt that it has.
pub const INPUT_SOCKET: Duration = Duration::from_secs(3);
/// How long the model may take to begin its answer to `doctor`.
pub const DOCTOR_MODEL: Duration = Duration::from_secs(30);
/// Longest key that an `api_key_command` may print.
pub const KEY_BYTES_MAX: usize = 16 << 10;
/// Threads for work that blocks: files, the store.
pub const BLOCKING_THREADS_MAX: usize = 32;
