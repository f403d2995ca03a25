//! Connections to PostgreSQL through a connection pooler (`pgbouncer`): its pool modes, and TLS.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::process::{Child, Command};

use harness::{Home, TestStore, on_postgres, poll};

/// A running pooler for the database of a home.
struct Pooler {
    child: Child,
    directory: tempfile::TempDir,
    port: u16,
}

impl Pooler {
    /// Starts it with these settings. `None` if the store is SQLite, or if pgbouncer is missing.
    async fn start(home: &Home, settings: &str) -> Option<Pooler> {
        let TestStore::Postgres(url) = home.store() else {
            eprintln!("skipped: {}: NUNCIO_TEST_STORE names no server", module_path!());
            return None;
        };
        let program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].map(Path::new).into_iter().find(|path| path.exists());
        let Some(program) = program else {
            eprintln!("skipped: {}: pgbouncer is not installed", module_path!());
            return None;
        };
        let (base, query) = url.split_once('?').unwrap();
        let name = base.rsplit('/').next().unwrap();
        let query = query.replace('&', " ").replace("%2F", "/");
        let directory = tempfile::Builder::new().permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755)).tempdir();
        let directory = directory.unwrap();
        // Below the ports that the kernel gives to clients and to the servers of other tests.
        let port = 10_000 + (uuid::Uuid::new_v4().as_u128() % 20_000) as u16;
        let at = directory.path().display();
        let text = format!(
            "[databases]\n{name} = {query} dbname={name} user=nuncio\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir = {at}\nauth_type = any\n{settings}\n"
        );
        let file = directory.path().join("pgbouncer.ini");
        std::fs::write(&file, text).unwrap();
        // pgbouncer refuses to run as root.
        let mut command = if rustix::process::getuid().is_root() {
            assert!(std::process::Command::new("chown").args(["-R", "nobody"]).arg(directory.path()).status().unwrap().success());
            let mut command = Command::new("setpriv");
            command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        let child = command.arg("--quiet").arg(&file).kill_on_drop(true).spawn().unwrap();
        let socket = directory.path().join(format!(".s.PGSQL.{port}"));
        poll("the pooler", || socket.exists()).await;
        Some(Pooler { child, directory, port })
    }

    /// Returns the URL of the home's database at the pooler: over TCP to `host`, or its socket.
    fn url(&self, home: &Home, host: Option<&str>) -> String {
        let TestStore::Postgres(url) = home.store() else { unreachable!() };
        let name = url.split_once('?').unwrap().0.rsplit('/').next().unwrap().to_owned();
        let port = self.port;
        match host {
            Some(host) => format!("postgres://nuncio@{host}:{port}/{name}"),
            None => {
                let socket = self.directory.path().to_str().unwrap().replace('/', "%2F");
                format!("postgres://nuncio@localhost/{name}?host={socket}&port={port}")
            }
        }
    }

    async fn stop(mut self) {
        self.child.kill().await.unwrap();
    }
}

/// Settings, notifications and prepared statements are lost if the pooler changes the connection to
/// the server between transactions.
#[tokio::test]
async fn pooler_without_sessions_is_refused() {
    for (mode, code) in [("transaction", 2), ("statement", 2), ("session", 0)] {
        let home = Home::new();
        let Some(pooler) = Pooler::start(&home, &format!("pool_mode = {mode}")).await else { return };
        let ran = home.run(&["sessions", "list", "--store", &pooler.url(&home, None)], "").await;
        assert_eq!(ran.code, code, "{mode}: {ran:?}");
        assert_eq!(home.store().exists(), code == 0, "{mode}");
        if code != 0 {
            assert!(ran.stderr.contains("LISTEN") && ran.stderr.contains("session pooling"), "{mode}: {ran:?}");
        }
        pooler.stop().await;
    }
}

/// Writes a certificate of an authority. Returns the path of the authority's certificate.
fn write_certificate(directory: &Path, name: &str) -> PathBuf {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let path = |kind: &str| directory.join(format!("{name}.{kind}.pem"));
    std::fs::write(path("certificate"), certificate.pem()).unwrap();
    std::fs::write(path("key"), key.serialize_pem()).unwrap();
    std::fs::write(path("authority"), authority.pem()).unwrap();
    path("authority")
}

/// The certificate of the server is checked as `sslmode` says, by default with its name.
#[tokio::test]
async fn certificate_of_the_server_is_checked() {
    let home = Home::new();
    if !on_postgres() {
        eprintln!("skipped: {}: NUNCIO_TEST_STORE names no server", module_path!());
        return;
    }
    let files = tempfile::Builder::new().permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755)).tempdir().unwrap();
    let (known, other) = (write_certificate(files.path(), "known"), write_certificate(files.path(), "other"));
    let file = |name: &str| files.path().join(name).display().to_string();
    let settings = format!(
        "pool_mode = session\nclient_tls_sslmode = require\nclient_tls_cert_file = {}\nclient_tls_key_file = {}",
        file("known.certificate.pem"),
        file("known.key.pem")
    );
    let Some(encrypted) = Pooler::start(&home, &settings).await else { return };
    let Some(plain) = Pooler::start(&home, "pool_mode = session").await else { return };
    let (known, other) = (format!("sslrootcert={}", known.display()), format!("sslrootcert={}", other.display()));
    let (localhost, address) = (encrypted.url(&home, Some("localhost")), encrypted.url(&home, Some("127.0.0.1")));
    let unencrypted = plain.url(&home, Some("localhost"));
    let cases = [
        (format!("{localhost}?{known}"), 0, ""),
        (format!("{localhost}?sslmode=verify-full&{known}"), 0, ""),
        (format!("{address}?{known}"), 3, "is for another name"),
        (format!("{address}?sslmode=verify-ca&{known}"), 0, ""),
        (format!("{address}?sslmode=verify-ca&{other}"), 3, "certificate"),
        (format!("{localhost}?{other}"), 3, "certificate"),
        (localhost.clone(), 3, "certificate"),
        (format!("{address}?sslmode=require"), 0, ""),
        (format!("{localhost}?sslmode=disable"), 3, "SSL required"),
        (format!("{localhost}?sslrootcert=/missing.pem"), 2, "sslrootcert: /missing.pem"),
        (unencrypted.clone(), 3, "TLS"),
        (format!("{unencrypted}?sslmode=disable"), 0, ""),
    ];
    for (store, code, message) in cases {
        let ran = home.run(&["sessions", "list", "--store", &store], "").await;
        assert_eq!(ran.code, code, "{store}: {ran:?}");
        assert!(ran.stderr.contains(message) && (code == 0) == ran.stderr.is_empty(), "{store}: {ran:?}");
    }
    encrypted.stop().await;
    plain.stop().await;
}
