//! A server whose store cannot be opened.

use serde_json::json;

use harness::Home;

const UNREACHABLE: &str = "postgres://127.0.0.1:1/x?sslmode=disable";

#[tokio::test]
async fn server_does_not_listen_without_its_store() {
    let home = Home::new();
    let broken = Home::new();
    std::fs::create_dir_all(broken.data()).unwrap();
    std::fs::write(broken.data().join("nuncio.db"), "no database, but a text of more than sixteen bytes").unwrap();
    let cases: [(&Home, &[&str], i32, &str); 5] = [
        (&home, &["--store", "mysql://x"], 2, "it does not begin with postgres://"),
        (&home, &["--store", "postgres://localhost:x/y"], 2, "the URL of the store is invalid"),
        (&home, &["--store", UNREACHABLE], 3, "connecting to the database"),
        (&home, &["--store", "mysql://x", "--wait-for-store"], 2, "it does not begin with postgres://"),
        (&broken, &[], 1, "nuncio.db"),
    ];
    for (home, flags, code, message) in cases {
        let ran = home.run(&[&["serve", "--http", "127.0.0.1:0"], flags].concat(), "").await;
        assert!(ran.code == code && ran.stderr.contains(message), "{flags:?}: {} {}", ran.code, ran.stderr);
        assert!(!ran.stdout.contains("listens"), "{flags:?}: {}", ran.stdout);
    }
}

#[tokio::test]
async fn server_that_waits_for_its_store_is_ready_later() {
    let home = Home::new();
    let file = home.data().join("nuncio.db");
    std::fs::create_dir_all(&file).unwrap();
    let server = home.serve(&["--wait-for-store"]).await;
    for _ in 0..3 {
        let ready = server.get("/ready").without("authorization").send().await;
        assert_eq!((ready.status, &ready.json()["error"]["details"]["reason"]), (503, &json!("store")), "{ready:?}");
    }
    assert_eq!(server.get("/health").send().await.status, 200);
    std::fs::remove_dir(&file).unwrap();
    harness::bounded("the store", async { while server.get("/ready").send().await.status != 200 {} }).await;
    server.new_session(&home).await;
    let said = server.stop().await;
    for line in ["the store is unavailable", "the store is available"] {
        assert_eq!(said.matches(line).count(), 1, "{said}");
    }
}
