//! Bodies of responses, up to a size.

use futures_util::StreamExt;

/// The received part of a body.
pub(crate) struct LimitedBody {
    pub bytes: Vec<u8>,
    /// The body is larger than the maximum, or was interrupted.
    pub incomplete: Option<MissingPart>,
}

/// The reason why a part of a body is missing.
pub(crate) enum MissingPart {
    TooLarge,
    Failed(reqwest::Error),
}

/// Reads at most `max` bytes of the body of a response.
pub(crate) async fn read(response: reqwest::Response, max: usize) -> LimitedBody {
    let (mut pieces, mut bytes) = (response.bytes_stream(), Vec::new());
    while let Some(piece) = pieces.next().await {
        match piece {
            Ok(piece) => bytes.extend_from_slice(&piece),
            Err(error) => return LimitedBody { bytes, incomplete: Some(MissingPart::Failed(error)) },
        }
        if bytes.len() > max {
            bytes.truncate(max);
            return LimitedBody { bytes, incomplete: Some(MissingPart::TooLarge) };
        }
    }
    LimitedBody { bytes, incomplete: None }
}
