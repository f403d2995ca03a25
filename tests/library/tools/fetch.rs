//! The `fetch` tool, with a site on loopback that the settings allow.

use std::net::IpAddr;

use nuncio::internal::web::is_public;

use super::*;
use harness::{Site, bounded};

async fn world() -> (World, Site) {
    let site = Site::start().await;
    let mut world = World::new();
    world.context.fetch_hosts = Arc::new([site.host.clone()]);
    (world, site)
}

#[tokio::test]
async fn pages_are_converted_to_text() {
    let (world, site) = world().await;
    let html = "<html><head><title>T</title><style>p{}</style></head><body><h1>One</h1><script>x()</script>\
                <p>A <a href=\"/b\">link</a> and <b>bold</b>.</p><ul><li>x</li></ul></body></html>";
    let rows: [(&str, &str, &[u8], &str); 13] = [
        ("/html", "text/html; charset=utf-8", html.as_bytes(), "T\n\n# One\n\nA [link](/b) and **bold**.\n\n*   x"),
        ("/plain", "text/plain", "häm & <b>".as_bytes(), "häm & <b>"),
        ("/json", "application/json", b"{\"a\": 1}\n", "{\"a\": 1}"),
        ("/feed", "application/atom+xml", b"<feed/>", "<feed/>"),
        ("/latin", "text/plain; charset=ISO-8859-1", b"caf\xe9", "café"),
        ("/unsaid-latin", "text/plain", b"caf\xe9", "café"),
        ("/meta", "text/html", b"<meta charset=\"windows-1251\"><p>\xcf\xf0\xe8", "При"),
        ("/quoted", "text/html; charset=\"shift_jis\"", b"<p>\x93\xfa", "日"),
        ("/marked", "text/plain; charset=latin1", b"\xef\xbb\xbfcaf\xc3\xa9", "café"),
        ("/wide", "text/plain", b"\xff\xfea\0b\0", "ab"),
        ("/typeless", "", b"<!DOCTYPE html><h2>Two</h2>", "## Two"),
        ("/bytes", "application/octet-stream", b"just text", "just text"),
        ("/empty", "text/html", b"", "[the page has no text]"),
    ];
    for (path, kind, body, text) in rows {
        let head = if kind.is_empty() { "200 OK".into() } else { format!("200 OK\ncontent-type: {kind}") };
        site.page(path, &head, body);
        let told = world.told("fetch", json!({"url": site.url(path)})).await;
        let line_end = if path == "/empty" { "" } else { "\n" };
        assert_eq!(told, format!("ok {text}{line_end}"), "{path}");
    }
    let output = world.call("fetch", json!({"url": site.url("/json")})).await.unwrap();
    let details =
        json!({"url": site.url("/json"), "status": 200, "bytes": 9, "truncated": false, "contentType": "application/json"});
    assert_eq!(output.details, details);
    let head = &site.asked()[0];
    assert!(head.contains("user-agent: nuncio/") && !head.contains("cookie") && !head.contains("referer"), "{head}");
}

#[tokio::test]
async fn images_are_returned_and_other_binary_content_is_rejected() {
    let (world, site) = world().await;
    site.page("/image", "200 OK\ncontent-type: text/plain", b"\x89PNG\r\n\x1a\nrest");
    let output = world.call("fetch", json!({"url": site.url("/image")})).await.unwrap();
    assert_eq!(output.parts[1], Part::Image { mime_type: "image/png".into(), data: "iVBORw0KGgpyZXN0".into() });
    site.page("/zip", "200 OK\ncontent-type: application/zip", b"PK\x03\x04\0\0");
    site.page("/unknown", "200 OK", b"\0\x01\x02");
    site.page("/packed", "200 OK\ncontent-type: text/plain\ncontent-encoding: gzip", b"\x1f\x8b");
    let url = site.url("/");
    let advice = "not text; use bash with curl -o to save it to a file";
    let rows = [
        ("zip", format!("error {url}zip is application/zip, {advice}")),
        ("unknown", format!("error {url}unknown is application/octet-stream, {advice}")),
        ("packed", format!("error fetching {url}packed: unsupported content encoding gzip")),
    ];
    for (path, told) in rows {
        assert_eq!(world.told("fetch", json!({"url": format!("{url}{path}")})).await, told, "{path}");
    }
}

#[tokio::test]
async fn fetch_errors_state_the_cause() {
    let (world, site) = world().await;
    site.page("/404", "404 Not Found\ncontent-type: text/html", "<h1>No such page</h1>");
    site.page("/304", "304 Not Modified", "");
    site.page("/broken", "200 OK\ncontent-type: text/plain\ncontent-length: 50", "short");
    let url = site.url("/");
    let rows = [
        (format!("{url}404"), format!("error {url}404 answered 404 Not Found: # No such page")),
        (format!("{url}304"), format!("error {url}304 answered 304 Not Modified:")),
        (format!("{url}broken"), format!("error fetching {url}broken: ")),
        ("file:///etc/passwd".into(), "error file:///etc/passwd is not an http or https URL".into()),
        ("ftp://example.org/".into(), "error ftp://example.org/ is not an http or https URL".into()),
        ("example.org".into(), "error invalid URL example.org: relative URL without a base; use https://host/path".into()),
        ("https://me:secret@example.org/".into(), "error the URL contains a user name or a password; remove it".into()),
    ];
    for (url, told) in rows {
        let now = world.told("fetch", json!({"url": url})).await;
        assert!(now.starts_with(&told), "{url}: {now}");
    }
}

#[tokio::test]
async fn redirects_are_followed_up_to_the_limit() {
    let (world, site) = world().await;
    site.page("/end", "200 OK\ncontent-type: text/plain", "there");
    for number in 0..12 {
        site.redirect(&format!("/{number}"), &format!("/{}", number + 1));
    }
    site.redirect("/12", "end");
    site.redirect("/file", "file:///etc/passwd");
    site.redirect("/private", "http://10.1.2.3/");
    site.redirect("/metadata", "http://169.254.169.254/latest/meta-data/");
    site.redirect("/nowhere", "http://");
    let output = world.call("fetch", json!({"url": site.url("/3")})).await.unwrap();
    assert_eq!((plain_text(&output.parts), &output.details["url"]), ("there\n".to_owned(), &json!(site.url("/end"))));
    let refused = "the host is not on the public web; the setting tools.fetch_allowed_hosts lists the exceptions";
    let rows = [
        ("/2", format!("error more than 10 redirects, the last one to {}", site.url("/end"))),
        ("/file", "error file:///etc/passwd is not an http or https URL".into()),
        ("/private", format!("error http://10.1.2.3/: {refused}")),
        ("/metadata", format!("error http://169.254.169.254/latest/meta-data/: {refused}")),
        ("/nowhere", format!("error {} redirects to the invalid URL http://: empty host", site.url("/nowhere"))),
    ];
    for (path, told) in rows {
        assert_eq!(world.told("fetch", json!({"url": site.url(path)})).await, told, "{path}");
    }
}

#[tokio::test]
async fn private_addresses_are_rejected_unless_allowed() {
    let (mut world, site) = world().await;
    site.page("/", "200 OK\ncontent-type: text/plain", "here");
    let port = site.host.split(':').nth(1).unwrap();
    // One address in all notations, and a name that resolves to it.
    let hosts = ["127.0.0.1", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "localhost"];
    world.context.fetch_hosts = Arc::new(["localhost:1".into(), "example.org".into()]);
    for host in hosts {
        let told = world.told("fetch", json!({"url": format!("http://{host}:{port}/")})).await;
        assert!(told.starts_with("error ") && told.contains("not on the public web"), "{host}: {told}");
    }
    assert_eq!(site.asked().len(), 0);
    for allowed in [format!("LocalHost:{port}"), "localhost".into()] {
        world.context.fetch_hosts = Arc::new([allowed]);
        assert_eq!(world.told("fetch", json!({"url": format!("http://localhost:{port}/")})).await, "ok here\n");
    }
}

#[test]
fn public_and_private_addresses_are_distinguished() {
    let public = [
        "1.1.1.1",
        "8.8.8.8",
        "172.15.0.1",
        "172.32.0.1",
        "100.63.0.1",
        "192.0.1.1",
        "223.255.255.255",
        "2606:4700::1111",
        "2a00::1",
    ];
    let others = [
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.9.9.9",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.51.100.7",
        "203.0.113.7",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:1.1.1.1",
        "::1.2.3.4",
        "64:ff9b::a00:1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:a00:1::",
        "3fff::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ];
    let is = |text: &str| is_public(text.parse::<IpAddr>().unwrap());
    assert_eq!(public.into_iter().filter(|text| !is(text)).collect::<Vec<_>>(), [""; 0]);
    assert_eq!(others.into_iter().filter(|text| is(text)).collect::<Vec<_>>(), [""; 0]);
}

#[tokio::test]
async fn long_pages_are_truncated_and_saved_as_artifacts() {
    use std::os::unix::fs::PermissionsExt;
    let (world, site) = world().await;
    let whole: String = (0..20_000).map(|number| format!("{number}\n")).collect();
    site.page("/long", "200 OK\ncontent-type: text/plain", &whole);
    site.page("/endless", "200 OK\ncontent-type: text/plain", "x".repeat((5 << 20) + 1));
    let output = world.call("fetch", json!({"url": site.url("/long")})).await.unwrap();
    let artifact = PathBuf::from(output.details["artifact"].as_str().unwrap());
    assert_eq!(artifact, world.context.workspace.artifacts.join("fetch-1.txt"));
    assert_eq!(std::fs::read_to_string(&artifact).unwrap().trim_end(), whole.trim_end());
    assert_eq!(std::fs::metadata(&artifact).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(artifact.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    let told = plain_text(&output.parts);
    let end = format!("\n[the first part; all {} bytes are in {}]", whole.len(), artifact.display());
    assert!(told.starts_with("0\n1\n") && told.ends_with(&end) && told.len() < 52_000, "{}", &told[told.len() - 300..]);
    let output = world.call("fetch", json!({"url": site.url("/endless")})).await.unwrap();
    let told = plain_text(&output.parts);
    assert!(
        told.contains("fetch-2.txt]\n[the page is longer than 5 MiB; the rest was not fetched]"),
        "{}",
        &told[told.len() - 300..]
    );
    assert_eq!((&output.details["bytes"], &output.details["truncated"]), (&json!(5 << 20), &json!(true)));
}

#[tokio::test]
async fn deeply_nested_pages_are_handled() {
    let (world, site) = world().await;
    let pages = [
        ("/deep", "<div>".repeat(2_000) + "text", "text"),
        ("/never-closed", "<p>".repeat(100_000) + "text", "text"),
        ("/formatted", "<b><p>".repeat(100) + "text", "**"),
        ("/closing", "<x></y>".repeat(2_000) + "text", "text"),
        ("/allowed", format!("{}text", "<ul><li>".repeat(199)), "*"),
        ("/quoted", format!("{}text", "<blockquote>".repeat(199)), ">"),
    ];
    for (path, html, begins) in pages {
        site.page(path, "200 OK\ncontent-type: text/html", html);
        let told = world.told("fetch", json!({"url": site.url(path)})).await;
        assert!(told.strip_prefix("ok ").is_some_and(|told| told.starts_with(begins)), "{path}: {}", &told[..told.len().min(200)]);
    }
}

#[tokio::test]
async fn fetch_from_unresponsive_host_can_be_cancelled() {
    let (world, site) = world().await;
    let cancel = world.context.cancel.clone();
    let told = bounded("the call", async {
        tokio::join!(world.told("fetch", json!({"url": site.url("/silent")})), async {
            site.came().await;
            cancel.cancel();
        })
        .0
    });
    assert_eq!(told.await, "error cancelled");
}
