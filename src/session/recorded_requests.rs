//! Records what the log of a session does not have of its model requests.

use std::sync::Arc;

use parking_lot::Mutex;

use super::shared_files::SharedFiles;
use crate::context::request_record::{RequestMessages, RequestRecorder};
use crate::id::SessionId;
use crate::model::{Request, RequestForm};

/// The recorder of one session.
pub(crate) struct RecordedRequests {
    session: SessionId,
    files: Arc<SharedFiles>,
    recorder: Mutex<RequestRecorder>,
}

impl RecordedRequests {
    pub(super) fn new(session: SessionId, files: Arc<SharedFiles>) -> RecordedRequests {
        RecordedRequests { session, files, recorder: Mutex::default() }
    }

    /// Records a request: `form` is how the model sends it. Returns the digest of the record.
    pub(crate) async fn add(&self, request: &Request, form: Option<Arc<RequestForm>>, messages: &RequestMessages) -> String {
        let (digest, texts) = self.recorder.lock().record(request, form, messages);
        if !texts.is_empty()
            && let Err(error) = self.files.keep_requests(&self.session, texts).await
        {
            tracing::warn!(session = %self.session, %error, "recording a model request failed");
            // The next request tries to store them again.
            *self.recorder.lock() = RequestRecorder::default();
        }
        digest
    }
}
