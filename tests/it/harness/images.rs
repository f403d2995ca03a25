//! Images for prompts, and the images of requests.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use serde_json::Value;

use super::Random;
use super::rules::magic::{self, ImageHeader};

/// Returns a grey PNG image in base64. The bytes of one with noise cannot be compressed.
pub fn png(width: u32, height: u32, has_noise: bool) -> String {
    let mut random = Random::from_seed(7);
    let mut rows = ZlibEncoder::new(Vec::new(), Compression::fast());
    for _ in 0..height {
        let row: Vec<u8> = match has_noise {
            true => (0..width).map(|_| random.below(256) as u8).collect(),
            false => vec![200; width as usize],
        };
        // Each row begins with its filter.
        rows.write_all(&[0]).unwrap();
        rows.write_all(&row).unwrap();
    }
    let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
    let header = [&size[..], &[8, 0, 0, 0, 0]].concat();
    let mut image = b"\x89PNG\r\n\x1a\n".to_vec();
    for (name, data) in [(b"IHDR", header), (b"IDAT", rows.finish().unwrap()), (b"IEND", Vec::new())] {
        let named = [&name[..], &data].concat();
        let mut crc = Crc::new();
        crc.update(&named);
        image.extend((data.len() as u32).to_be_bytes());
        image.extend(named);
        image.extend(crc.sum().to_be_bytes());
    }
    STANDARD.encode(image)
}

/// Returns a white bitmap in base64.
pub fn bitmap(width: u32, height: u32) -> String {
    let row = (width * 3).next_multiple_of(4);
    let size = 54 + row * height;
    let mut image = b"BM".to_vec();
    image.extend([size, 0, 54, 40, width, height].iter().flat_map(|number| number.to_le_bytes()));
    // One plane, 24 bits per pixel, not compressed.
    image.extend([1, 0, 24, 0]);
    image.extend([0; 24]);
    image.resize(size as usize, 255);
    STANDARD.encode(image)
}

/// Returns a GIF image of one pixel in base64.
pub fn gif() -> &'static str {
    "R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw=="
}

/// Returns the images in a request body: the header and the base64 text.
pub fn images_of(body: &Value) -> Vec<(ImageHeader, String)> {
    match body {
        Value::String(text) => {
            let data = text.split_once(";base64,").map_or(text.as_str(), |(_, data)| data);
            magic::read(data).map(|header| (header, data.to_owned())).into_iter().collect()
        }
        Value::Array(items) => items.iter().flat_map(images_of).collect(),
        Value::Object(fields) => fields.values().flat_map(images_of).collect(),
        _ => Vec::new(),
    }
}
