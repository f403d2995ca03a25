//! Reads documents in processes of their own, which hostile documents may end.

use tokio::io::AsyncWriteExt;
use tokio::time::{Duration, timeout};

use super::child::Child;
use super::launcher::ProcessLauncher;
use super::reader::{NO_TEXT, PANICKED};
use super::readers::{OUT_OF_MEMORY, OUT_OF_TIME};
use crate::documents::DocumentKind;
use crate::limits;

/// How long a document waits until fewer than [`limits::READERS_MAX`] others are read.
const READER_WAIT: Duration = Duration::from_secs(60);

/// Maximum length of the reason that a reader writes, in bytes.
const REASON_BYTES_MAX: usize = 500;

impl ProcessLauncher {
    /// Returns the text of a document. The error says why it cannot be read. Dropping the future
    /// ends the process that reads it. Must be called within a tokio runtime.
    pub async fn read_document(&self, kind: DocumentKind, bytes: &[u8]) -> Result<String, String> {
        let text = self.read_in_process(kind, bytes).await?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Returns a smaller copy of an image. Otherwise like [`ProcessLauncher::read_document`].
    pub async fn shrink_image(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        self.read_in_process(DocumentKind::Image, bytes).await
    }

    async fn read_in_process(&self, kind: DocumentKind, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let permit = timeout(READER_WAIT, self.readers().acquire()).await;
        let _permit = permit.map_err(|_| "too many other documents are being read; try again later")?;
        let (child, mut input) = self.spawn_reader(kind).map_err(|error| format!("its reader cannot be started: {error}"))?;
        let Child { mut output, mut ending } = child;
        let mut content = Vec::new();
        let read = async {
            let feed = async move {
                // Fails if the reader has ended, which its status explains.
                let _ = input.write_all(bytes).await;
            };
            // A reader that writes more than it should runs out of time.
            let most = 2 * kind.output_bytes_max();
            let take = async { while content.len() <= most && output.read(&mut content).await.unwrap_or(0) > 0 {} };
            tokio::join!(feed, take);
            ending.wait().await
        };
        let code = match timeout(limits::READER_TIME_MAX, read).await {
            Ok(Ok(status)) => status.code,
            Ok(Err(_)) => return Err(NO_REPORT.into()),
            Err(_) => OUT_OF_TIME,
        };
        if code == 0 { Ok(content) } else { Err(reason(code, &String::from_utf8_lossy(&content))) }
    }
}

/// The error if there is no fork server, or no longer.
const NO_REPORT: &str = "its reader did not report: the helper process of nuncio was killed, or this program does not serve as one \
                         because it does not call nuncio::init() first in main";

/// Returns why a reader has no text. `text` is what it wrote.
fn reason(code: i32, text: &str) -> String {
    const STACK: i32 = 128 + libc::SIGSEGV;
    const STACK_ELSEWHERE: i32 = 128 + libc::SIGBUS;
    const KILLED: i32 = 128 + libc::SIGKILL;
    match code {
        NO_TEXT => text[..text.floor_char_boundary(REASON_BYTES_MAX)].into(),
        PANICKED => "it is damaged".into(),
        OUT_OF_MEMORY => format!("its reader ran out of memory ({} MiB)", limits::READER_BYTES_MAX >> 20),
        OUT_OF_TIME => format!("reading it takes longer than {} s", limits::READER_TIME_MAX.as_secs()),
        STACK | STACK_ELSEWHERE => "its reader ran out of stack: it is nested too deeply".into(),
        KILLED => "its reader was killed, for example because the system ran out of memory".into(),
        other => format!("its reader ended with status {other}"),
    }
}
