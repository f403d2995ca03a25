//! The sandbox of commands: denied accesses fail by every route, and ordinary work succeeds.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::process::Stdio;

use nuncio::internal::process::Sandbox;

use super::*;
use harness::gone;
use harness::{marked, marker};

/// A world whose commands are confined to its directory. The parent directory also contains
/// `sibling` and `home`, which commands must not change.
fn confined(network: bool) -> World {
    let mut world = World::with_files(&[("inside", "inside\n"), ("../sibling/kept", "kept\n"), ("../home/kept", "kept\n")]);
    let writable = world.context.workspace.roots.clone();
    world.context.sandbox =
        Some(Sandbox { writable, temp: world.context.shell.temp().to_owned(), network, required: true, ..Sandbox::default() });
    world
}

/// The entries below `sibling` and `home`, with mode and content.
fn outside(world: &World) -> String {
    let all =
        "cd .. && find sibling home -printf '%p %y %m %s %l\\n' -type f -exec cat {} + | sort; ls /etc /tmp | grep nuncio-sandbox";
    let output = std::process::Command::new("sh").args(["-c", all]).current_dir(world.path("")).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

async fn code(world: &World, command: &str) -> (i64, String) {
    let home = world.directory.path().join("home");
    let output = world.call("bash", json!({"command": command, "env": {"HOME": home}})).await.unwrap();
    (output.details["exitCode"].as_i64().unwrap(), plain_text(&output.parts))
}

/// Asserts that each command fails and changes nothing outside.
async fn refused(world: &World, commands: &[&str]) {
    let before = outside(world);
    let mut through = Vec::new();
    for command in commands {
        let (code, told) = code(world, command).await;
        if code == 0 || outside(world) != before {
            through.push(format!("{command}: {told}"));
        }
    }
    assert_eq!(through, Vec::<String>::new());
}

async fn allowed(world: &World, commands: &[&str]) {
    let mut failed = Vec::new();
    for command in commands {
        let (code, told) = code(world, command).await;
        if code != 0 {
            failed.push(format!("{command}: {told}"));
        }
    }
    assert_eq!(failed, Vec::<String>::new());
}

const WRITES_OUTSIDE: [&str; 34] = [
    "echo x > ~/new",
    "echo x >> ~/kept",
    "echo x > /etc/nuncio-sandbox",
    "echo x > /tmp/nuncio-sandbox",
    "echo x > ../sibling/new",
    "echo x >> ../sibling/kept",
    ": > ../sibling/kept",
    "echo x 1<> ../sibling/kept",
    "rm ../sibling/kept",
    "rm -r ../sibling",
    "mkdir ../sibling/new",
    "mkfifo ../sibling/new",
    "ln -s kept ../sibling/new",
    "truncate -s 0 ../sibling/kept",
    "mv ../sibling/kept taken",
    "mv ../sibling taken",
    "mv inside ../sibling/new && false",
    "cp inside ../sibling/new",
    "ln inside ../sibling/new",
    "ln ../sibling/kept hard",
    "mv ../sibling/kept ../sibling/renamed",
    "ln -s ../sibling link1 && echo x > link1/new",
    "ln -s ../sibling/kept link2 && echo x > link2",
    "ln -s .. link3 && cd link3/sibling && echo x > new",
    "exec 9< ../sibling/kept; echo x > /proc/self/fd/9",
    "echo x > /proc/self/root$PWD/../sibling/new",
    "cd ../sibling && sed -i s/kept/x/ kept",
    "setsid -w sh -c 'echo x > ../sibling/new'",
    "nohup sh -c 'echo x > ../sibling/new'",
    "env -i /bin/sh -c 'echo x > ../sibling/new'",
    "perl -e 'fork or exec qw(sh -c), q(echo x > ../sibling/new); wait; exit($? >> 8)'",
    "unshare -Urm true",
    "mknod device b 1 1",
    "echo x > /dev/shm/nuncio-sandbox",
];

#[tokio::test]
async fn writes_outside_the_roots_are_denied() {
    needs_linux!("sandbox");
    refused(&confined(false), &WRITES_OUTSIDE).await;
    refused(&confined(true), &WRITES_OUTSIDE).await;
}

#[tokio::test]
async fn read_only_sandbox_denies_writes() {
    needs_linux!("sandbox");
    let mut world = confined(false);
    world.context.sandbox.as_mut().unwrap().writable.clear();
    refused(&world, &["echo x > new", "echo x >> inside", "rm inside", "mv inside new", "mkdir new", "ln -s inside new"]).await;
    assert_eq!(world.text("inside"), "inside\n");
    allowed(&world, &["cat inside ../sibling/kept", "echo x > $TMPDIR/new", "ls > /dev/null", "cat <<< text | grep -q text"]).await;
}

#[tokio::test]
async fn ordinary_work_is_allowed_inside_the_roots() {
    needs_linux!("sandbox");
    let world = confined(false);
    let commands = [
        "echo x > new && echo y >> inside && mkdir -p a/b && mv new a/b/new && ln a/b/new hard && rm -r a hard",
        "cp -a ../sibling copy && chmod 755 copy && rm -r copy",
        "mkfifo pipe && (echo x > pipe &) && read line < pipe && test $line = x",
        "echo x > $TMPDIR/file && test -s $TMPDIR/file && file=$(mktemp) && echo x > $file && test -d $(mktemp -d)",
        "test -s $TMPDIR/file",
        "echo x > /dev/null; head -c 10 /dev/urandom | wc -c; cat <(echo x) | grep -q x; cat <<< text",
        // Bash with an EXIT trap can lose a signal that its child gets before it executes the program.
        "sleep 60 & until read -r name < /proc/$!/comm && test $name = sleep; do :; done; kill $! && ! wait $!",
        "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or die; syswrite A, q(x); sysread B, $x, 1; $x eq q(x) or die'",
        "echo x | tee /dev/stderr >(cat) > /dev/stdout; echo x > file; echo x > /dev/stdout 2> /dev/null",
        "git init -q . && git add -A && git -c user.name=n -c user.email=e commit -q -m one && git log --oneline | grep -q one",
        &format!("perl -e '$x = qq(\\0) x 512; exit(syscall({}, $x) < 0)'", libc::SYS_adjtimex),
        "test $(ulimit -c) = 0 && test $(ulimit -Hu) != unlimited",
    ];
    allowed(&world, &commands).await;
}

#[tokio::test]
async fn confined_shell_keeps_its_directory_and_exports() {
    needs_linux!("sandbox");
    let world = confined(false);
    world.put("sub/file", "");
    let cases = [("cd sub; export A=1", "ok exit code: 0"), ("ls; echo $A", "ok file\n1\nexit code: 0")];
    for (command, told) in cases {
        assert_eq!(world.told("bash", json!({ "command": command })).await, told, "{command}");
    }
}

#[tokio::test]
async fn command_that_stops_its_supervisor_is_ended() {
    needs_linux!("sandbox");
    let world = confined(false);
    let marker = marker();
    let line = format!("echo started; kill -STOP $PPID; setsid sleep 60 {marker} & sleep 60 {marker}");
    let told = world.told("bash", json!({"command": line, "timeout_ms": 2000})).await;
    let expected = "error started\ntimed out after 2000 ms; all its processes were ended; set a longer timeout_ms if needed";
    assert_eq!(told, expected);
    assert_eq!(marked(&marker), Vec::<u32>::new());
    // Later commands still run.
    allowed(&world, &["true"]).await;
    // A background job with a stopped supervisor ends when the world is dropped.
    world.call("bash", json!({"command": line, "background": true})).await.unwrap();
    jobs::look_until(&world, "1", "started").await;
    drop(world);
    gone(&marker).await;
}

#[tokio::test]
async fn small_cargo_project_builds() {
    needs_linux!("sandbox");
    let world = confined(false);
    world.put("Cargo.toml", "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    world.put("src/main.rs", "fn main() { println!(\"{}\", 6 * 7); }\n");
    // Cargo reads its home directory, the same one that the tests use.
    let told = world.told("bash", json!({"command": "cargo run --offline --quiet"})).await;
    assert_eq!(told, "ok 42\nexit code: 0");
}

/// Listening sockets outside the sandbox, and commands that connect to them.
struct Listeners {
    tcp: TcpListener,
    udp: UdpSocket,
    _path: UnixListener,
    _datagrams: UnixDatagram,
    _abstract: UnixListener,
    name: String,
}

impl Listeners {
    fn new(world: &World) -> Listeners {
        let name = format!("nuncio-{}", harness::marker());
        Listeners {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            _path: UnixListener::bind(world.path("../sibling/socket")).unwrap(),
            _datagrams: UnixDatagram::bind(world.path("../sibling/datagrams")).unwrap(),
            _abstract: UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap(),
            name,
        }
    }

    fn internet(&self) -> [String; 3] {
        let (tcp, udp) = (self.tcp.local_addr().unwrap().port(), self.udp.local_addr().unwrap().port());
        [
            format!("exec 3<> /dev/tcp/127.0.0.1/{tcp}"),
            format!("echo x > /dev/udp/127.0.0.1/{udp}"),
            "perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0) or die; bind(S, sockaddr_in(0, INADDR_LOOPBACK)) or die; listen(S, 1) or die'"
                .into(),
        ]
    }

    fn unix(&self) -> [String; 3] {
        let connect = |kind: &str, path: &str| {
            format!("perl -MSocket -e 'socket(S, AF_UNIX, {kind}, 0) or die $!; connect(S, pack_sockaddr_un({path})) or die $!'")
        };
        [
            connect("SOCK_STREAM", "q(../sibling/socket)"),
            connect("SOCK_STREAM", &format!("qq(\\0{})", self.name)),
            "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_DGRAM, 0) or die $!; send(A, q(x), 0, pack_sockaddr_un(q(../sibling/datagrams))) or die $!'"
                .into(),
        ]
    }
}

#[tokio::test]
async fn sockets_outside_the_sandbox_are_unreachable() {
    needs_linux!("sandbox");
    let mut world = confined(false);
    let listeners = Listeners::new(&world);
    let (internet, unix) = (listeners.internet(), listeners.unix());
    let all: Vec<&str> = internet.iter().chain(&unix).map(String::as_str).collect();
    refused(&world, &all).await;
    // Internet sockets are reachable with a network, and all sockets without a sandbox.
    world.context.sandbox.as_mut().unwrap().network = true;
    allowed(&world, &all[..3]).await;
    refused(&world, &all[3..]).await;
    world.context.sandbox = None;
    allowed(&world, &all).await;
}

/// A process that the command did not start.
struct Stranger(std::process::Child);

impl Drop for Stranger {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test]
async fn other_processes_are_inaccessible() {
    needs_linux!("sandbox");
    let mut world = confined(false);
    let stranger = || Stranger(std::process::Command::new("sleep").arg("60").stdin(Stdio::piped()).spawn().unwrap());
    let (mut kept, mut killed) = (stranger(), stranger());
    let (one, other) = (kept.0.id(), killed.0.id());
    refused(
        &world,
        &[
            &format!("kill -9 {one}"),
            &format!("prlimit --pid {one} --cpu=100"),
            &format!("cat /proc/{one}/environ"),
            &format!("readlink /proc/{one}/fd/0"),
        ],
    )
    .await;
    assert!(kept.0.try_wait().unwrap().is_none());
    world.context.sandbox = None;
    allowed(&world, &[&format!("cat /proc/{other}/environ > /dev/null && readlink /proc/{other}/fd/0 && prlimit --pid {other} --cpu=100 && kill -9 {other}")]).await;
    killed.0.wait().unwrap();
}

#[tokio::test]
async fn system_calls_that_bypass_the_sandbox_are_denied() {
    needs_linux!("sandbox");
    let mut world = confined(true);
    // Each command exits with 0 when the system call fails with EPERM. The calls: io_uring_setup,
    // a call by its x32 number, keyctl, pidfd_getfd, and the ioctl TIOCSTI.
    let refused_by_number = |call: &str| format!("perl -e 'exit(!(syscall({call}) == -1 && $!{{EPERM}}))'");
    let mut commands = vec![refused_by_number("425, 1, 0")];
    if cfg!(target_arch = "x86_64") {
        commands.push(refused_by_number("0x40000000 + 39"));
        commands.push(refused_by_number("250, 0, 0"));
    }
    commands.push(refused_by_number("438, 0, 0, 0"));
    // Shared memory, semaphores and message queues of System V, which all processes can access.
    let everybodys = [
        ["shmget(7, 1, 0)", "shmctl(-1, 0, 0)", "shmread(-1, $x, 0, 1)"],
        ["semget(7, 1, 0)", "semctl(-1, 0, 0, 0)", "semop(-1, pack(q(s!3), 0, 0, 0))"],
        ["msgget(7, 0)", "msgctl(-1, 0, 0)", "msgsnd(2147483647, pack(q(l!x), 1), 0)"],
    ];
    commands.extend(everybodys.concat().iter().map(|call| format!("perl -e '{call}; exit(!$!{{EPERM}})'")));
    // Scheduling of a process, a process group and a user; no process has this id.
    let other = 0x3fff_ffff;
    let scheduling = [libc::SYS_sched_setaffinity, libc::SYS_sched_setattr, libc::SYS_sched_setparam, libc::SYS_sched_setscheduler];
    commands.extend(scheduling.map(|call| refused_by_number(&format!("{call}, {other}, 8, $x = q(a) x 64"))));
    for (call, kinds) in [(libc::SYS_setpriority, 0..=2), (libc::SYS_ioprio_set, 1..=3)] {
        commands.extend(kinds.map(|kind| refused_by_number(&format!("{call}, {kind}, {other}, 5"))));
    }
    let (priority, io) = (libc::SYS_setpriority, libc::SYS_ioprio_set);
    allowed(&world, &["nice -n 19 true", &format!("perl -e 'exit(syscall({priority}, 0, 0, 19) || syscall({io}, 1, 0, 0x6000))'")])
        .await;
    commands.push("perl -e 'exit(!(!ioctl(STDIN, 0x5412, $x = q(x)) && $!{EPERM}))'".into());
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    allowed(&world, &commands).await;
    world.context.sandbox = None;
    for command in commands {
        assert_ne!(code(&world, command).await.0, 0, "{command} is refused to everybody");
    }
}

#[tokio::test]
async fn failed_command_output_describes_the_sandbox() {
    needs_linux!("sandbox");
    let mut world = confined(false);
    let told = world.told("bash", json!({"command": "echo Permission denied; exit 3"})).await;
    let root = world.path("");
    let hint = format!("[sandbox workspace-write: writes only below {}, $TMPDIR; no network, no sockets]", root.display());
    assert_eq!(told, format!("ok Permission denied\nexit code: 3\n{}", hint.replace("/,", ",")));
    assert_eq!(world.told("bash", json!({"command": "echo x"})).await, "ok x\nexit code: 0");
    world.call("bash", json!({"command": "exit 3", "background": true})).await.unwrap();
    let looked = jobs::look_until(&world, "1", "ended").await;
    let told = plain_text(&looked.parts);
    assert_eq!(told, "[job 1 ended: exit code: 3]");
    assert_eq!(json!(looked.content)[0]["content"]["text"], "[job 1 ended: exit code: 3]");
    let sandbox = world.context.sandbox.as_mut().unwrap();
    sandbox.writable.clear();
    sandbox.network = true;
    let told = world.told("bash", json!({"command": "echo Permission denied; exit 3"})).await;
    let hint = "[sandbox read-only: writes only below $TMPDIR; network, but no unix sockets]";
    assert_eq!(told, format!("ok Permission denied\nexit code: 3\n{hint}"));
}

#[tokio::test]
async fn writable_directory_replaced_by_symlink_is_not_writable() {
    needs_linux!("sandbox");
    let mut world = confined(false);
    world.put("deep/file", "");
    let deep = world.path("deep");
    world.context.sandbox.as_mut().unwrap().writable.push(deep);
    let (code, told) = code(&world, "rm -r deep && ln -s ../sibling deep").await;
    assert_eq!(code, 0, "{told}");
    refused(&world, &["echo x > deep/new"]).await;
}
