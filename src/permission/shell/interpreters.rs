//! Tables of programs that take code: shells, interpreters, and programs that are not analysed.

use super::word::is_one_of;

/// Shells whose command lines are analysed.
pub(crate) const SHELLS: &[&str] = &["ash", "bash", "dash", "rbash", "sh"];

/// Programs that run code or commands in ways that are not analysed, or on other machines and
/// terminals.
const UNREADABLE: &str = "\
    alias at batch bind bwrap capsh catchsegv choom chroot chrt compgen complete crontab csh dbus-run-session dc declare docker ed \
    editor emacs emacs-gtk emacs-lucid emacs-nox emacs-pgtk emacsclient enable entr ex expect export fakeroot fc fish flock gdb gview \
    gvim hash hyperfine i386 i486 i586 i686 inotifywait jed joe ksh kubectl ld.so let linux32 linux64 lldb local ltrace lxc \
    machinectl mg mksh nano ne nix-shell nsenter numactl nvim parallel perf pico pkexec prlimit pwsh readonly rlwrap rsh run-parts \
    runcon runuser rush rview rvim screen script select-editor sensible-editor sensible-pager setarch setpriv sg shopt socat ssh \
    ssh-agent start-stop-daemon strace su systemd-run taskset tclsh tcsh tmux typeset uname26 unbuffer unshare valgrind vi view vim \
    vimdiff watch wish x86_64 zsh";

/// Interpreters, each with the letters of its options that take code, and the letters of its
/// options with another value.
pub(crate) const INTERPRETERS: &[(&str, &str, &str)] = &[
    ("bun", "ep", ""),
    ("deno", "", ""),
    ("lua", "el", ""),
    ("luajit", "el", ""),
    ("node", "epr", "C"),
    ("nodejs", "epr", "C"),
    ("perl", "eEFMmdx", "I"),
    ("php", "rBREd", "c"),
    ("pypy", "c", "WX"),
    ("pypy3", "c", "WX"),
    ("python", "c", "QWX"),
    ("python2", "c", "QW"),
    ("python3", "c", "WX"),
    ("ruby", "erx", "CEI"),
    ("Rscript", "e", ""),
];

/// Returns whether the program is a shell that is analysed.
pub(crate) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// Returns whether the program runs code or commands in ways that are not analysed.
pub(crate) fn is_unreadable(name: &str) -> bool {
    is_one_of(UNREADABLE, name)
}
