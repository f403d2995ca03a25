//! Colours of code by its syntax. A thread of their own renders texts with them, because the
//! queries of a language take up to 50 ms to compile.

mod languages;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;
use tree_sitter_highlight::{HighlightConfiguration, HighlightEvent, Highlighter};

use self::languages::LANGUAGES;
use super::styled_text::{Colour, StyledText, TextStyle};

/// Maximum size of code that gets colours, in bytes.
pub(crate) const CODE_BYTES_MAX: usize = 256 << 10;
/// How long a text may take. After that, it has no colours.
const TIME_MAX: Duration = Duration::from_secs(1);

/// The names of captures, with their styles. `property` counts only for data.
const STYLES: &[(&str, TextStyle)] = &[
    ("keyword", TextStyle::coloured(Colour::Magenta)),
    ("tag", TextStyle::coloured(Colour::Magenta)),
    ("string", TextStyle::coloured(Colour::Green)),
    ("escape", TextStyle::coloured(Colour::Green)),
    ("number", TextStyle::coloured(Colour::Yellow)),
    ("boolean", TextStyle::coloured(Colour::Yellow)),
    ("constant.builtin", TextStyle::coloured(Colour::Yellow)),
    ("comment", TextStyle::dim()),
    ("function", TextStyle::coloured(Colour::Blue)),
    ("string.special.key", TextStyle::coloured(Colour::Blue)),
    ("property", TextStyle::coloured(Colour::Blue)),
];

/// Patterns of all names, which have no colour.
const GENERAL_PATTERNS: [&str; 3] = ["(identifier) @variable", "(field_identifier) @property", "(property_identifier) @property"];

/// Returns the name of the language of a file, if it has colours.
pub(crate) fn language_of(path: &Path) -> Option<&str> {
    path.extension()?.to_str().filter(|extension| has_colours(extension))
}

/// Returns whether code in a language has colours.
pub(crate) fn has_colours(language: &str) -> bool {
    languages::find(language).is_some()
}

/// The compiled queries of the languages that were used.
pub(crate) struct SyntaxColours {
    highlighter: Highlighter,
    configurations: Vec<OnceLock<Option<HighlightConfiguration>>>,
    /// Not zero: the text takes too long.
    cancelled: Arc<AtomicUsize>,
}

impl SyntaxColours {
    fn new() -> SyntaxColours {
        let configurations = LANGUAGES.iter().map(|_| OnceLock::new()).collect();
        SyntaxColours { highlighter: Highlighter::new(), configurations, cancelled: Arc::default() }
    }

    /// Returns the lines of code with their colours. `None`: the language is not known, or the code
    /// is too long.
    pub(crate) fn lines(&mut self, language: &str, code: &str) -> Option<Vec<StyledText>> {
        let index = languages::find(language).filter(|_| code.len() <= CODE_BYTES_MAX)?;
        let configuration = self.configurations[index].get_or_init(|| compiled(index)).as_ref()?;
        let flag = &*self.cancelled;
        let events = self.highlighter.highlight(configuration, code.as_bytes(), None, Some(flag), |_| None).ok()?;
        let (mut lines, mut styles) = (vec![StyledText::default()], Vec::new());
        for event in events {
            match event.ok()? {
                HighlightEvent::HighlightStart(highlight) => styles.push(STYLES[highlight.0].1),
                HighlightEvent::HighlightEnd => drop(styles.pop()),
                HighlightEvent::Source { start, end } => {
                    let style = styles.last().copied().unwrap_or_default();
                    for (number, part) in code.get(start..end)?.split('\n').enumerate() {
                        if number > 0 {
                            lines.push(StyledText::default());
                        }
                        lines.last_mut()?.push(part, style);
                    }
                }
            }
        }
        Some(lines)
    }
}

/// Compiles the queries of a language. `None` if they do not fit its grammar.
fn compiled(index: usize) -> Option<HighlightConfiguration> {
    let row = &LANGUAGES[index];
    // The last pattern of a name counts, and in Go's queries, that is the one of all names.
    let is_specific = |line: &&str| !GENERAL_PATTERNS.contains(&line.trim());
    let query: Vec<&str> =
        row.queries.iter().flat_map(|query| query.lines()).filter(|line| row.has_keys || is_specific(line)).collect();
    let mut configuration = HighlightConfiguration::new((row.grammar)(), "", &query.join("\n"), "", "").ok()?;
    let name = |(name, _): &(&'static str, TextStyle)| if *name == "property" && !row.has_keys { "" } else { *name };
    configuration.configure(&STYLES.iter().map(name).collect::<Vec<_>>());
    Some(configuration)
}

/// Renders a text, with colours if they are available.
type Job = Box<dyn Fn(Option<&mut SyntaxColours>) -> String + Send>;

/// A job, and the text that it renders, if any.
type QueuedJob = (Option<LaterText>, Job);

/// A text that is being rendered.
#[derive(Clone)]
pub(crate) struct LaterText(Arc<LaterSlot>);

struct LaterSlot {
    text: Mutex<Option<String>>,
    is_ready: Condvar,
    cancelled: Arc<AtomicUsize>,
    begun: Instant,
}

impl LaterText {
    /// Returns the text, if it is ready.
    pub(crate) fn ready(&self) -> Option<String> {
        if self.0.begun.elapsed() > TIME_MAX {
            self.0.cancelled.store(1, Ordering::Relaxed);
        }
        self.0.text.lock().clone()
    }

    /// Waits for the text.
    pub(crate) fn wait(&self) -> String {
        let mut text = self.0.text.lock();
        loop {
            if let Some(text) = text.clone() {
                return text;
            }
            if self.0.is_ready.wait_for(&mut text, TIME_MAX).timed_out() {
                self.0.cancelled.store(1, Ordering::Relaxed);
            }
        }
    }
}

/// The thread that renders texts with colours, in their order. It starts with the first text.
#[derive(Clone, Default)]
pub(crate) struct SyntaxThread {
    jobs: Arc<OnceLock<mpsc::Sender<QueuedJob>>>,
    /// Notified when a text is ready.
    done: Arc<Notify>,
}

impl SyntaxThread {
    /// Waits until a text is ready. Cancel safe.
    pub(crate) async fn done(&self) {
        self.done.notified().await;
    }

    /// Compiles the queries of a language, which code will soon need.
    pub(crate) fn prepare(&self, language: &str) {
        let language = language.to_owned();
        let compile = move |syntax: Option<&mut SyntaxColours>| {
            syntax.and_then(|syntax| syntax.lines(&language, ""));
            String::new()
        };
        self.send(None, Box::new(compile));
    }

    /// Renders a text.
    pub(crate) fn render(&self, job: impl Fn(Option<&mut SyntaxColours>) -> String + Send + 'static) -> LaterText {
        let (text, is_ready) = (Mutex::new(None), Condvar::new());
        let later = LaterText(Arc::new(LaterSlot { text, is_ready, cancelled: Arc::default(), begun: Instant::now() }));
        self.send(Some(later.clone()), Box::new(job));
        later
    }

    fn send(&self, later: Option<LaterText>, job: Job) {
        let jobs = self.jobs.get_or_init(|| {
            let (sender, jobs) = mpsc::channel();
            let done = self.done.clone();
            // Without a thread, the channel is closed.
            let _ = std::thread::Builder::new().name("syntax".into()).spawn(move || work(&jobs, &done));
            sender
        });
        if let Err(mpsc::SendError((Some(later), job))) = jobs.send((later, job)) {
            finish(&later, job(None), &self.done);
        }
    }
}

fn work(jobs: &mpsc::Receiver<QueuedJob>, done: &Notify) {
    let mut syntax = SyntaxColours::new();
    for (later, job) in jobs {
        syntax.cancelled = later.as_ref().map(|later| later.0.cancelled.clone()).unwrap_or_default();
        // A grammar that fails must not stop the output.
        let attempt = std::panic::AssertUnwindSafe(|| job(Some(&mut syntax)));
        let text = std::panic::catch_unwind(attempt).unwrap_or_else(|_| {
            syntax = SyntaxColours::new();
            job(None)
        });
        if let Some(later) = later {
            finish(&later, text, done);
        }
    }
}

fn finish(later: &LaterText, text: String, done: &Notify) {
    *later.0.text.lock() = Some(text);
    later.0.is_ready.notify_all();
    done.notify_one();
}
