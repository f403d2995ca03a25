//! Credentials in URLs: detects them in settings, and masks them in messages, logs and the store.

/// Placeholder for a masked credential.
pub(super) const MASK: &str = "***";

/// Hint of the error about a base URL that contains a user name or a password.
pub(crate) const CREDENTIALS_HINT: &str =
    "remove them and set api_key_env to the name of the environment variable that holds the key";

/// Returns whether a URL has user information (RFC 3986, section 3.2.1). Lenient like browsers: the
/// slashes after the scheme may be missing or backslashes. A password may contain any character.
pub(crate) fn has_credentials(url: &str) -> bool {
    let rest = url.split_once(':').map_or("", |(_, rest)| rest);
    credentials(rest.trim_start_matches(['/', '\\'])).is_some()
}

/// Masks the user information and the query values of all URLs in `text`.
pub(crate) fn mask_urls(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut left = text;
    while let Some(at) = left.find("://") {
        let (before, rest) = left.split_at(at + 3);
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`')).unwrap_or(rest.len());
        // A Markdown link may repeat its URL as its text; mask each URL separately.
        let end = rest[..end].find("](http").unwrap_or(end);
        // Punctuation after the URL is not part of it.
        let end = rest[..end].trim_end_matches([')', ',', '.', ';', ':']).len();
        masked.push_str(before);
        mask_url(&rest[..end], &mut masked);
        left = &rest[end..];
    }
    masked + left
}

/// Masks the part of a URL after `://`, and appends the result to `masked`.
fn mask_url(url: &str, masked: &mut String) {
    let url = match credentials(url) {
        Some(at) => {
            masked.push_str(MASK);
            &url[at..]
        }
        None => url,
    };
    let (url, fragment) = url.find('#').map_or((url, ""), |at| url.split_at(at));
    let (address, query) = url.find('?').map_or((url, ""), |at| url.split_at(at));
    masked.push_str(address);
    for (index, pair) in query.split(['?', '&']).enumerate().skip(1) {
        masked.push(if index == 1 { '?' } else { '&' });
        let (name, value) = pair.split_once('=').map_or(("", pair), |(name, value)| (&pair[..=name.len()], value));
        masked.push_str(name);
        masked.push_str(if value.is_empty() { "" } else { MASK });
    }
    masked.push_str(fragment);
}

/// Returns the position of the `@` that ends the user information, in the part of a URL after
/// `://`.
fn credentials(rest: &str) -> Option<usize> {
    let authority = &rest[..rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len())];
    if let Some(at) = authority.rfind('@') {
        return Some(at);
    }
    // The text after the colon is not a port, so it is a password that contains a delimiter.
    let (_, port) = authority.rsplit_once(':').filter(|_| !authority.starts_with('['))?;
    if port.bytes().all(|byte| byte.is_ascii_digit()) { None } else { rest.rfind('@') }
}
