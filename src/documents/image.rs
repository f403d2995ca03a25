//! Smaller copies of images, for providers that do not accept the original.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, Rgba, RgbaImage, imageops};

use crate::limits;

/// Maximum number of pixels of an image that is read.
const PIXELS_MAX: u64 = 50_000_000;
/// Maximum memory of a decoder, in bytes.
const DECODER_BYTES_MAX: u64 = 176 << 20;
/// The lengths of the longer edge that are tried, in pixels. The first one is accepted by every
/// provider, and more than models look at.
const EDGES: [u32; 4] = [2000, 1400, 1000, 700];
/// The quality of JPEG images, of 100.
const QUALITY: u8 = 85;

/// Returns a copy of an image that every provider accepts: PNG or JPEG, at most 2,000 pixels wide
/// and high, and at most [`limits::IMAGE_COPY_BYTES_MAX`] long. Equal images have equal copies.
pub(super) fn shrink(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(|error| error.to_string())?;
    let is_photo = reader.format() == Some(ImageFormat::Jpeg);
    let image = decode(reader)?;
    for edge in EDGES {
        let copy = if image.width().max(image.height()) > edge { image.thumbnail(edge, edge) } else { image.clone() };
        let copies = [(!is_photo).then(|| png(&copy)), Some(jpeg(&copy))];
        for encoded in copies.into_iter().flatten() {
            let encoded = encoded.map_err(|error| describe(&error))?;
            if encoded.len() <= limits::IMAGE_COPY_BYTES_MAX {
                return Ok(encoded);
            }
        }
    }
    Err("no copy of it is small enough".into())
}

fn decode(mut reader: ImageReader<Cursor<&[u8]>>) -> Result<DynamicImage, String> {
    let mut limits = Limits::default();
    limits.max_alloc = Some(DECODER_BYTES_MAX);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|error| describe(&error))?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > PIXELS_MAX {
        return Err(format!("it has more than {} million pixels", PIXELS_MAX / 1_000_000));
    }
    let orientation = decoder.orientation().map_err(|error| describe(&error))?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(|error| describe(&error))?;
    image.apply_orientation(orientation);
    Ok(image)
}

fn describe(error: &ImageError) -> String {
    match error {
        ImageError::Limits(_) => "its pixels need too much memory".into(),
        ImageError::Unsupported(_) => "its type cannot be converted".into(),
        error => format!("it is damaged: {error}"),
    }
}

fn png(image: &DynamicImage) -> Result<Vec<u8>, ImageError> {
    let mut encoded = Vec::new();
    // With 16 bits per channel, the copy would be twice as long.
    let image = match image.color().has_alpha() {
        true => DynamicImage::from(image.to_rgba8()),
        false => DynamicImage::from(image.to_rgb8()),
    };
    image.write_with_encoder(PngEncoder::new(&mut encoded))?;
    Ok(encoded)
}

/// Encodes an image on white, because JPEG has no transparency.
fn jpeg(image: &DynamicImage) -> Result<Vec<u8>, ImageError> {
    let mut encoded = Vec::new();
    let image = match image.color().has_alpha() {
        true => {
            let mut background = RgbaImage::from_pixel(image.width(), image.height(), Rgba([255; 4]));
            imageops::overlay(&mut background, &image.to_rgba8(), 0, 0);
            DynamicImage::from(background).to_rgb8()
        }
        false => image.to_rgb8(),
    };
    DynamicImage::from(image).write_with_encoder(JpegEncoder::new_with_quality(&mut encoded, QUALITY))?;
    Ok(encoded)
}
