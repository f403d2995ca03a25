//! Waits for states that nothing reports, such as the descriptors of another process.

use std::time::Duration;

use super::bounded;

/// Waits until `condition` is true and panics after [`super::LIMIT`].
pub async fn poll(what: &str, mut condition: impl FnMut() -> bool) {
    let mut interval = tokio::time::interval(Duration::from_millis(5));
    bounded(what, async {
        while !condition() {
            interval.tick().await;
        }
    })
    .await;
}
