//! Selects the calls of the system: those of POSIX (`cfg(posix)`) on systems other than Linux, or
//! if NUNCIO_POSIX=1, so that Linux can test them.

#![allow(clippy::print_stdout)]

fn main() {
    println!("cargo::rerun-if-env-changed=NUNCIO_POSIX");
    println!("cargo::rustc-check-cfg=cfg(posix)");
    let is_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if !is_linux || std::env::var("NUNCIO_POSIX").is_ok_and(|value| value == "1") {
        println!("cargo::rustc-cfg=posix");
    }
}
