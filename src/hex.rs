//! Bytes in hexadecimal.

/// Returns two lowercase digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the 32 bytes that `text` begins with; `None` if it does not.
pub(crate) fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut out = [0; 32];
    let digits = text.as_bytes();
    for (index, byte) in out.iter_mut().enumerate() {
        let pair = std::str::from_utf8(digits.get(2 * index..2 * index + 2)?).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(out)
}
