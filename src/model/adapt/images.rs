//! Images that the provider accepts: of a type that it reads, with the media type of their content,
//! and not too large. Other images are converted or become text. Each message is looked at once.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use tokio::sync::Mutex;

use super::traits::ProviderTraits;
use crate::content::Part;
use crate::model::answer::Chunk;
use crate::model::message::{Message, Messages, ToolResult};
use crate::model::wire::is_image;
use crate::workspace::image_type;

/// Length of the start of an image that shows its type, in bytes of base64.
const START: usize = 32;
/// Length of the start of an image in which its size is searched, in bytes of base64. The metadata
/// of a photo may precede it.
const HEADER: usize = 512 << 10;
/// Why an image whose base64 text or header is invalid is not sent.
const DAMAGED: &str = "its data are damaged";
/// The type of bitmaps, which no provider accepts.
const BITMAP: &str = "image/bmp";

type Convert = dyn Fn(Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, String>> + Send + Sync;

/// Makes a copy of an image that every provider accepts: a small PNG or JPEG. The error says why no
/// copy could be made.
#[derive(Clone)]
pub struct ImageConverter(Arc<Convert>);

impl ImageConverter {
    /// Creates a converter that calls `convert` with the bytes of the image.
    pub fn new(convert: impl Fn(Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, String>> + Send + Sync + 'static) -> Self {
        ImageConverter(Arc::new(convert))
    }
}

/// Converts nothing.
impl Default for ImageConverter {
    fn default() -> Self {
        ImageConverter::new(|_| Box::pin(async { Err("images are not converted".to_owned()) }))
    }
}

/// The images of a model's requests.
#[derive(Default)]
pub(super) struct FittedImages {
    converter: ImageConverter,
    last: Mutex<FittedMessages>,
}

#[derive(Default)]
struct FittedMessages {
    /// The messages were fitted for these properties and this maximum edge.
    fitted_for: Option<(ProviderTraits, u32)>,
    /// The messages with images, by their address, which is not reused while there is an entry.
    messages: HashMap<usize, FittedMessage>,
    /// The reasons that were reported.
    named: HashSet<String>,
}

struct FittedMessage {
    original: Weak<Message>,
    /// The message that is sent instead; `None` if the original is sent.
    fitted: Option<Arc<Message>>,
}

impl FittedImages {
    pub(super) fn new(converter: ImageConverter) -> FittedImages {
        FittedImages { converter, last: Mutex::default() }
    }

    /// Replaces the images of a conversation that the provider does not accept. Returns a notice
    /// for each reason for which an image became text and that no earlier notice named.
    pub(super) async fn fit(&self, traits: ProviderTraits, model: &str, messages: &mut Messages) -> Vec<Chunk> {
        let counts = messages.iter().map(|message| images(message)).enumerate();
        let with_images: Vec<(usize, usize)> = counts.filter(|(_, count)| *count > 0).collect();
        let edge_max = traits.image_edge_max(with_images.iter().map(|(_, count)| count).sum());
        let mut last = self.last.lock().await;
        let fitted_for = Some((traits, edge_max));
        if last.fitted_for != fitted_for {
            *last = FittedMessages { fitted_for, named: std::mem::take(&mut last.named), ..FittedMessages::default() };
        }
        last.messages.retain(|_, message| message.original.strong_count() > 0);
        let mut reasons = Vec::new();
        for (index, _) in with_images {
            let message = &messages[index];
            let address = Arc::as_ptr(message).addr();
            let fitted = match last.messages.get(&address) {
                Some(known) => known.fitted.clone(),
                None => {
                    let fitter = ImageFitter { converter: &self.converter, traits, edge_max };
                    let fitted = fitter.message(message, &mut reasons).await.map(Arc::new);
                    let original = Arc::downgrade(message);
                    last.messages.insert(address, FittedMessage { original, fitted: fitted.clone() });
                    fitted
                }
            };
            if let Some(fitted) = fitted {
                Arc::make_mut(messages)[index] = fitted;
            }
        }
        let new = reasons.into_iter().filter(|why| last.named.insert(why.clone()));
        let notice = |why: String| Chunk::Notice {
            title: format!("{model} does not get an image"),
            description: format!("{why}; the model gets a text instead"),
            code: Some("image_replaced".to_owned()),
        };
        new.map(notice).collect()
    }
}

fn images(message: &Message) -> usize {
    let count = |parts: &[Part]| parts.iter().filter(|part| is_image(part)).count();
    match message {
        Message::User(parts) => count(parts),
        Message::ToolResults(results) => results.iter().map(|result| count(&result.output)).sum(),
        Message::Assistant(_) => 0,
    }
}

struct ImageFitter<'a> {
    converter: &'a ImageConverter,
    traits: ProviderTraits,
    /// Maximum width and height, in pixels.
    edge_max: u32,
}

/// An image as the provider gets it.
enum Fit {
    Same,
    /// The media type of the content, which differs from the type in the log.
    Type(&'static str),
    /// A copy of it fits. Why it does not fit itself.
    Copy(&'static str),
    /// Why it does not fit.
    Text(&'static str),
}

impl ImageFitter<'_> {
    /// Returns the message that is sent instead of `message`, if it differs.
    async fn message(&self, message: &Message, reasons: &mut Vec<String>) -> Option<Message> {
        let mut left = self.traits.message_images_max;
        match message {
            Message::User(parts) => self.parts(parts, &mut left, reasons).await.map(Message::User),
            Message::ToolResults(results) => {
                let mut fitted: Option<Vec<ToolResult>> = None;
                for (index, result) in results.iter().enumerate() {
                    if let Some(output) = self.parts(&result.output, &mut left, reasons).await {
                        fitted.get_or_insert_with(|| results.clone())[index].output = output;
                    }
                }
                fitted.map(Message::ToolResults)
            }
            Message::Assistant(_) => None,
        }
    }

    /// Fits the images of a message, of which `left` can be sent.
    async fn parts(&self, parts: &[Part], left: &mut usize, reasons: &mut Vec<String>) -> Option<Vec<Part>> {
        let mut fitted: Option<Vec<Part>> = None;
        for (index, part) in parts.iter().enumerate() {
            let Part::Image { mime_type, data } = part else { continue };
            let fit = match left.checked_sub(1) {
                Some(rest) => {
                    *left = rest;
                    self.check(mime_type, data)
                }
                None => Fit::Text("the message has too many images"),
            };
            let part = match fit {
                Fit::Same => continue,
                Fit::Type(mime_type) => Part::Image { mime_type: mime_type.into(), data: data.clone() },
                Fit::Text(why) => text(mime_type, why.into(), reasons),
                Fit::Copy(why) => match self.copy(data).await {
                    Ok(copy) => copy,
                    Err(error) => text(mime_type, format!("{why}, and there is no smaller copy: {error}"), reasons),
                },
            };
            fitted.get_or_insert_with(|| parts.to_vec())[index] = part;
        }
        fitted
    }

    async fn copy(&self, data: &str) -> Result<Part, String> {
        let bytes = STANDARD.decode(data).map_err(|_| DAMAGED)?;
        let copy = (self.converter.0)(bytes).await?;
        let mime_type = image_type(&copy).ok_or("its copy has no known type")?;
        Ok(Part::Image { mime_type: mime_type.into(), data: STANDARD.encode(copy) })
    }

    fn check(&self, mime_type: &str, data: &str) -> Fit {
        if !self.traits.reads_images {
            return Fit::Text("the model does not read images");
        }
        if data.is_empty() || !data.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')) {
            return Fit::Text(DAMAGED);
        }
        let start = |length: usize| STANDARD.decode(&data[..length.min(data.len()) / 4 * 4]).ok();
        let Some(type_start) = start(START) else { return Fit::Text(DAMAGED) };
        let Some(found) = image_type(&type_start).or_else(|| other_type(&type_start)) else {
            return Fit::Text("its type is not known");
        };
        let edge = match is_heif(found) || found == BITMAP {
            true => None,
            false => start(HEADER).and_then(|header| imagesize::blob_size(&header).ok()).map(|size| size.width.max(size.height)),
        };
        let has_size = matches!(found, "image/png" | "image/gif" | "image/webp") || found == "image/jpeg" && data.len() <= HEADER;
        let unfit = match edge {
            Some(0) => return Fit::Text(DAMAGED),
            None if has_size => return Fit::Text(DAMAGED),
            _ if !self.traits.image_types.contains(&found) => "the provider does not accept this type",
            _ if data.len() > self.traits.image_bytes_max => "it is too large",
            Some(edge) if edge > self.edge_max as usize => "it has too many pixels",
            _ if found != mime_type => return Fit::Type(found),
            _ => return Fit::Same,
        };
        if is_heif(found) { Fit::Text(unfit) } else { Fit::Copy(unfit) }
    }
}

/// Returns the text that is sent instead of an image.
fn text(mime_type: &str, why: String, reasons: &mut Vec<String>) -> Part {
    let part = Part::text(format!("[{mime_type} image, which cannot be shown: {why}]"));
    reasons.push(why);
    part
}

/// Returns the media type of a bitmap, or of an image of HEIF (ISO/IEC 23008-12), which only Gemini
/// accepts and which is not converted.
fn other_type(start: &[u8]) -> Option<&'static str> {
    if start.starts_with(b"BM") {
        return Some(BITMAP);
    }
    match start.get(4..)?.strip_prefix(b"ftyp")? {
        [b'h', b'e', b'i', ..] => Some("image/heic"),
        [b'm', b'i', b'f', b'1', ..] => Some("image/heif"),
        _ => None,
    }
}

fn is_heif(media_type: &str) -> bool {
    media_type.starts_with("image/hei")
}
