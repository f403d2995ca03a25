//! Markers in the environment or the arguments of processes, by which a test finds all that it
//! started.

/// A unique number. A test puts it into the environment or the arguments of all processes that it
/// starts.
pub fn marker() -> String {
    format!("0.{}", uuid::Uuid::now_v7().as_u128())
}

/// Processes other than zombies that have `marker` in their environment or arguments.
pub fn marked(marker: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let mut said = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        said.extend(std::fs::read(entry.path().join("cmdline")).unwrap_or_default());
        if memchr::memmem::find(&said, marker.as_bytes()).is_some() {
            found.push(pid);
        }
    }
    found
}
