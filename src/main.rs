//! The binary.

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == nuncio::process::HELPER) {
        nuncio::process::helper_main(arguments);
    }
}
