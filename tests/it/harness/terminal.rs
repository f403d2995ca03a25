//! A command on a pseudo terminal in raw mode: output is unchanged and input is not echoed.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Stdio;

use tokio::io::unix::AsyncFd;
use tokio::process::Child;

use super::{Home, LIMIT, bounded};

pub struct Terminal {
    child: Child,
    pub pid: u32,
    /// The write end of standard input, if standard input is a pipe.
    pub stdin: Option<tokio::process::ChildStdin>,
    master: AsyncFd<OwnedFd>,
    shown: Vec<u8>,
}

impl Home {
    /// Starts a command with all three standard streams on a terminal. `TERM` has a default value,
    /// which the home can replace.
    pub fn terminal(&self, arguments: &[&str]) -> Terminal {
        Terminal::start(self, arguments, None)
    }

    /// Like `terminal`, with another standard input.
    pub fn terminal_with_input(&self, arguments: &[&str], stdin: Stdio) -> Terminal {
        Terminal::start(self, arguments, Some(stdin))
    }
}

impl Terminal {
    fn start(home: &Home, arguments: &[&str], stdin: Option<Stdio>) -> Terminal {
        let (master, slave) = open();
        let mut command = home.command(arguments);
        if !command.as_std().get_envs().any(|(name, _)| name == "TERM") {
            command.env("TERM", "xterm-256color");
        }
        command.stdin(stdin.unwrap_or_else(|| slave.try_clone().unwrap().into()));
        command.stdout(slave.try_clone().unwrap()).stderr(slave);
        // The kernel ignores Ctrl-Z in a process group that nobody outside of it can continue.
        command.process_group(0);
        let mut child = command.spawn().unwrap();
        // The command holds the terminal's other end, which would keep the output from ending.
        drop(command);
        // SAFETY: the descriptor is owned and never replaced.
        let master = unsafe { AsyncFd::register(master) }.unwrap();
        Terminal { pid: child.id().unwrap(), stdin: child.stdin.take(), child, master, shown: Vec::new() }
    }

    /// False at the end of the output.
    async fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let read = self.master.async_io(tokio::io::Interest::READABLE, |fd| Ok(rustix::io::read(fd, &mut bytes[..])?)).await;
        match read {
            Ok(count) if count > 0 => {
                self.shown.extend_from_slice(&bytes[..count]);
                true
            }
            // EIO: no process has the terminal open.
            _ => false,
        }
    }

    /// Reads until the output contains `words`. Returns the whole output so far.
    pub async fn until(&mut self, words: &str) -> String {
        self.until_times(words, 1).await
    }

    /// Reads until the output contains `words` so many times. Returns the whole output so far.
    pub async fn until_times(&mut self, words: &str, times: usize) -> String {
        let found = tokio::time::timeout(LIMIT, async {
            loop {
                let shown = String::from_utf8_lossy(&self.shown).into_owned();
                if shown.matches(words).count() >= times {
                    return shown;
                }
                assert!(self.read().await, "ended before {words:?}: {shown:?}");
            }
        });
        found.await.unwrap_or_else(|_| panic!("no {words:?} for {LIMIT:?}: {}", String::from_utf8_lossy(&self.shown)))
    }

    /// Reads until the output after its first `start` bytes contains one of the words. Returns the
    /// word.
    pub async fn until_any<'a>(&mut self, words: &[&'a str], start: usize) -> &'a str {
        bounded(&words.join(" or "), async {
            loop {
                let shown = String::from_utf8_lossy(&self.shown[start..]).into_owned();
                if let Some(found) = words.iter().find(|word| shown.contains(**word)) {
                    return *found;
                }
                assert!(self.read().await, "ended before {words:?}: {shown:?}");
            }
        })
        .await
    }

    /// Closes the terminal. Returns the command.
    pub fn hang_up(self) -> Child {
        self.child
    }

    /// The whole output so far, without waiting.
    pub fn so_far(&mut self) -> String {
        let mut bytes = [0; 4096];
        while let Ok(count) = rustix::io::read(self.master.get_ref(), &mut bytes[..])
            && count > 0
        {
            self.shown.extend_from_slice(&bytes[..count]);
        }
        String::from_utf8_lossy(&self.shown).into_owned()
    }

    /// The screen of a terminal of this size after the output so far, with up to 1,000 lines above
    /// it.
    pub fn screen(&self, rows: u16, columns: u16) -> String {
        self.lines(rows, columns, |screen, row| screen.rows(0, columns).nth(row.into()).unwrap_or_default())
    }

    /// The same with marks where the attributes change: `‹bold 31›text‹›`, with the numbers of SGR
    /// (ECMA-48) for colours.
    pub fn styled_screen(&self, rows: u16, columns: u16) -> String {
        self.lines(rows, columns, |screen, row| {
            let (mut line, mut last) = (String::new(), String::new());
            for cell in (0..columns).filter_map(|column| screen.cell(row, column)).filter(|cell| !cell.is_wide_continuation()) {
                let style = if cell.has_contents() { attributes(cell) } else { last.clone() };
                if style != last {
                    line += &format!("‹{style}›");
                    last = style;
                }
                line += if cell.has_contents() { cell.contents() } else { " " };
            }
            let line = line.trim_end();
            if last.is_empty() { line.into() } else { format!("{line}‹›") }
        })
    }

    fn lines(&self, rows: u16, columns: u16, line: impl Fn(&vt100::Screen, u16) -> String) -> String {
        let mut parser = vt100::Parser::new(rows, columns, 1000);
        parser.process(&self.shown);
        parser.screen_mut().set_scrollback(1000);
        let above = parser.screen().scrollback();
        let mut lines = Vec::new();
        for hidden in (1..=above).rev() {
            parser.screen_mut().set_scrollback(hidden);
            lines.push(line(parser.screen(), 0));
        }
        parser.screen_mut().set_scrollback(0);
        lines.extend((0..rows).map(|row| line(parser.screen(), row)));
        let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
        lines.join("\n").trim_end().to_owned()
    }

    /// Returns whether the output ends within a synchronized update (DEC mode 2026), so that the
    /// screen has rows of two frames.
    fn is_drawing(&self) -> bool {
        let shown = String::from_utf8_lossy(&self.shown);
        shown.rfind("\u{1b}[?2026l") < shown.rfind("\u{1b}[?2026h")
    }

    /// Reads until the screen contains `words`, and no frame is incomplete. Returns the screen.
    pub async fn until_screen(&mut self, words: &str, (rows, columns): (u16, u16)) -> String {
        bounded(words, async {
            loop {
                let screen = self.screen(rows, columns);
                if screen.contains(words) && !self.is_drawing() {
                    return screen;
                }
                assert!(self.read().await, "ended before {words:?}: {screen}");
            }
        })
        .await
    }

    /// Reads until the screen contains one of `words` and not `without`, and no frame is incomplete.
    /// Returns the word.
    pub async fn until_screen_any<'a>(&mut self, words: &[&'a str], without: &str, (rows, columns): (u16, u16)) -> &'a str {
        bounded(&words.join(" or "), async {
            loop {
                let screen = self.screen(rows, columns);
                let shows = |word: &&&str| screen.contains(**word) && !screen.contains(without);
                if let Some(found) = words.iter().find(shows).filter(|_| !self.is_drawing()) {
                    return *found;
                }
                assert!(self.read().await, "ended before {words:?}: {screen}");
            }
        })
        .await
    }

    /// Lets Ctrl-C send SIGINT, as `stty isig` does.
    pub fn set_interrupt_character(&self) {
        let mut modes = rustix::termios::tcgetattr(self.master.get_ref()).unwrap();
        modes.local_modes.insert(rustix::termios::LocalModes::ISIG);
        rustix::termios::tcsetattr(self.master.get_ref(), rustix::termios::OptionalActions::Now, &modes).unwrap();
    }

    /// Sets the size of the terminal.
    pub fn resize(&self, rows: u16, columns: u16) {
        let size = rustix::termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(self.master.get_ref(), size).unwrap();
    }

    pub async fn say(&mut self, text: &str) {
        let mut bytes = text.as_bytes();
        while !bytes.is_empty() {
            let written = self.master.async_io(tokio::io::Interest::WRITABLE, |fd| Ok(rustix::io::write(fd, bytes)?)).await;
            bytes = &bytes[written.unwrap()..];
        }
    }

    /// Rejects a permission request of `run`, without a reason.
    pub async fn reject(&mut self) {
        self.say("n").await;
        self.until("Reason for the model").await;
        self.say("\n").await;
    }

    /// Waits for the end of the command. Returns the exit code and the whole output.
    pub async fn end(mut self) -> (i32, String) {
        drop(self.stdin.take());
        bounded("the end of the output", async { while self.read().await {} }).await;
        let status = bounded("the exit", self.child.wait()).await.unwrap();
        (status.code().unwrap_or(-1), String::from_utf8(self.shown).unwrap())
    }
}

/// Both ends of a new terminal in raw mode. The first end is non-blocking.
fn open() -> (OwnedFd, OwnedFd) {
    let (mut master, mut slave) = (-1, -1);
    let nothing = std::ptr::null_mut();
    // SAFETY: openpty(3) writes two descriptors and accepts null for the other arguments.
    let opened = unsafe { libc::openpty(&mut master, &mut slave, nothing, nothing.cast(), nothing.cast()) };
    assert_eq!(opened, 0, "openpty: {}", std::io::Error::last_os_error());
    // SAFETY: both descriptors are new and have no other owner.
    let (master, slave) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
    // SAFETY: an all-zero termios is valid, and tcgetattr(3) fills the value before use.
    unsafe {
        let mut modes: libc::termios = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(slave.as_raw_fd(), &mut modes), 0);
        libc::cfmakeraw(&mut modes);
        assert_eq!(libc::tcsetattr(slave.as_raw_fd(), libc::TCSANOW, &modes), 0);
    }
    for end in [&master, &slave] {
        rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC).unwrap();
    }
    rustix::fs::fcntl_setfl(&master, rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NONBLOCK).unwrap();
    (master, slave)
}

fn attributes(cell: &vt100::Cell) -> String {
    let colour = |colour, base: u8| match colour {
        vt100::Color::Default => None,
        vt100::Color::Idx(index @ 0..8) => Some((base + index).to_string()),
        other => Some(format!("{other:?}")),
    };
    let flags = [
        (cell.bold(), "bold"),
        (cell.dim(), "dim"),
        (cell.italic(), "italic"),
        (cell.underline(), "underline"),
        (cell.inverse(), "inverse"),
    ];
    let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name.to_owned());
    let parts: Vec<String> = flags.chain(colour(cell.fgcolor(), 30)).chain(colour(cell.bgcolor(), 40)).collect();
    parts.join(" ")
}
