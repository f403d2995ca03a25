//! Log lines for a terminal: the time (UTC), then the request or the event.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::event::timestamp;
use crate::session::clock::now_ms;
use crate::terminal_text::output_line;

/// Formats an event as one line.
pub(crate) struct LogLines;

impl<S, N> FormatEvent<S, N> for LogLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let now = timestamp(now_ms());
        let time = now.get(11..19).unwrap_or(&now);
        let text = fields.request().unwrap_or_else(|| format!("{} {}", event.metadata().level(), fields.text()));
        writeln!(writer, "{time} {}", output_line(&text))
    }
}

/// Field names and values, in the order in which they were recorded.
#[derive(Default)]
struct Fields(Vec<(&'static str, String)>);

impl Fields {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// Formats the log line of a request: `POST /v1/sessions 201 1.4 ms owner`. Returns `None` for
    /// other log records.
    fn request(&self) -> Option<String> {
        if self.get("message") != Some("request") {
            return None;
        }
        let ms: f64 = self.get("ms")?.parse().ok()?;
        let [method, route, status] = [self.get("method")?, self.get("route")?, self.get("status")?];
        Some(format!("{method} {route} {status} {ms:.1} ms {}", self.get("principal")?))
    }

    fn text(&self) -> String {
        let others = self.0.iter().filter(|(name, _)| *name != "message").map(|(name, value)| format!(" {name}={value}"));
        self.get("message").unwrap_or_default().to_string() + &others.collect::<String>()
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.into()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push((field.name(), format!("{value:?}")));
    }
}
