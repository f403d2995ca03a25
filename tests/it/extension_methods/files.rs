//! Attachments and artifacts: stored with the session, with safe names, and sent to the model.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::refused;
use harness::{Agent, Home};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n rest";

async fn add(agent: &mut Agent, session: &str, name: &str, bytes: &[u8]) -> Value {
    let params = json!({"sessionId": session, "name": name, "data": STANDARD.encode(bytes), "mimeType": "a/lie"});
    agent.call("_nuncio/attachment/add", params).await
}

#[tokio::test]
async fn attachments_are_stored_unchanged() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([]), &[]).await;
    // Name, content, stored name, MIME type.
    let cases: &[(&str, &[u8], &str, &str)] = &[
        ("img.png", PNG, "img.png", "image/png"),
        ("img.png", b"\xff\xd8\xff and so on", "img-2.png", "image/jpeg"),
        ("img.png", b"GIF89a", "img-3.png", "image/gif"),
        ("img-2.png", b"RIFF1234WEBP", "img-2-2.png", "image/webp"),
        ("a paper", b"%PDF-1.7\xff", "a paper", "application/pdf"),
        ("a paper", "Grüße".as_bytes(), "a paper-2", "text/plain"),
        ("empty", b"", "empty", "text/plain"),
        ("100% ünï.bin", b"a\0b", "100% ünï.bin", "application/octet-stream"),
    ];
    for (name, bytes, kept, kind) in cases {
        let added = add(&mut agent, &session, name, bytes).await;
        assert_eq!(
            (&added["name"], &added["mimeType"], &added["size"]),
            (&json!(kept), &json!(kind), &json!(bytes.len())),
            "{name}: {added}"
        );
        let path = home.data().join("attachments").join(&session).join(kept);
        assert_eq!(std::fs::read(&path).unwrap(), *bytes);
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    }
    for (_, bytes, kept, kind) in cases {
        let got = agent.call("_nuncio/attachment/get", json!({"sessionId": session, "name": kept})).await;
        let mut expected = json!({"name": kept, "mimeType": kind, "size": bytes.len(), "data": STANDARD.encode(bytes)});
        if *kind == "text/plain" {
            expected["text"] = String::from_utf8_lossy(bytes).into();
        }
        assert_eq!(got, expected);
    }
    let listed = agent.call("_nuncio/attachment/list", json!({"sessionId": session})).await;
    let names: Vec<&str> = listed["attachments"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["100% ünï.bin", "a paper", "a paper-2", "empty", "img-2-2.png", "img-2.png", "img-3.png", "img.png"]);
    // A URI works in another place, too: it has no path of this machine.
    let uri = format!("nuncio:///v1/sessions/{session}/attachments/100%25%20%C3%BCn%C3%AF.bin");
    assert_eq!(listed["attachments"][0]["uri"], uri, "{listed}");

    let out = home.data().join("out");
    let ran = home.run(&["sessions", "export", &session, "--layout", out.to_str().unwrap()], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(std::fs::read(out.join("attachments/img.png")).unwrap(), PNG);
    agent.call("session/delete", json!({"sessionId": session})).await;
    assert!(!home.data().join("attachments").join(&session).exists());
    agent.finish().await;
}

/// A zip file with these entries.
fn package(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut file = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in entries {
        let method = if *name == "mimetype" { zip::CompressionMethod::Stored } else { zip::CompressionMethod::Deflated };
        file.start_file(*name, zip::write::SimpleFileOptions::default().compression_method(method)).unwrap();
        std::io::Write::write_all(&mut file, content.as_bytes()).unwrap();
    }
    file.finish().unwrap().into_inner()
}

fn word(body: &str) -> Vec<u8> {
    let document = format!("<?xml version=\"1.0\"?><w:document xmlns:w=\"w\"><w:body>{body}</w:body></w:document>");
    package(&[("[Content_Types].xml", "<Types/>"), ("word/document.xml", &document)])
}

fn open_document(kind: &str, body: &str) -> Vec<u8> {
    let content = format!("<office:document-content><office:body>{body}</office:body></office:document-content>");
    package(&[("mimetype", &format!("application/vnd.oasis.opendocument.{kind}")), ("content.xml", &content)])
}

fn workbook() -> Vec<u8> {
    let sheets = r#"<workbook><sheets><sheet name="Costs &amp; more" sheetId="1" r:id="rId7"/></sheets></workbook>"#;
    let relations = r#"<Relationships><Relationship Id="rId7" Target="worksheets/sheet1.xml"/></Relationships>"#;
    let styles = r#"<styleSheet><numFmts><numFmt numFmtId="170" formatCode="yyyy\-mm"/></numFmts>
        <cellXfs><xf numFmtId="0"/><xf numFmtId="22"/><xf numFmtId="170"/></cellXfs></styleSheet>"#;
    let strings = "<sst><si><t>Name</t></si><si><r><t>two </t></r><r><t>runs</t></r><rPh><t>no</t></rPh></si></sst>";
    let sheet = r#"<worksheet><sheetData>
        <row><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row>
        <row><c r="A2"><v>1.5</v></c><c r="B2" s="1"><v>45366.5</v></c><c r="C2" s="2"><v>60</v></c><c r="D2" t="b"><v>1</v></c></row>
        <row><c t="inlineStr"><is><t>inline</t></is></c><c t="str"><f>A1</f><v>result</v></c></row>
        </sheetData></worksheet>"#;
    package(&[
        ("xl/workbook.xml", sheets),
        ("xl/_rels/workbook.xml.rels", relations),
        ("xl/styles.xml", styles),
        ("xl/sharedStrings.xml", strings),
        ("xl/worksheets/sheet1.xml", sheet),
    ])
}

/// The text of a document is shown to clients, and sent to the model in place of the file.
#[tokio::test]
async fn text_of_documents_is_extracted() {
    let home = Home::new();
    let paragraph = |text: &str| format!("<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>");
    let cells = |texts: &[&str]| texts.iter().map(|text| format!("<w:tc>{}</w:tc>", paragraph(text))).collect::<String>();
    let body = paragraph("One &amp; tw&#111;")
        + "<w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:delText>gone</w:delText><w:t>c</w:t></w:r></w:p>"
        + &format!("<w:tbl><w:tr>{}</w:tr><w:tr>{}</w:tr></w:tbl>", cells(&["x", "y"]), cells(&["1", "2"]));
    let long = word(&paragraph(&"long ".repeat(100_000)));
    let table = "<table:table table:name=\"T\"><table:table-row><table:table-cell table:number-columns-repeated=\"2\"/>\
                 <table:table-cell><text:p>v</text:p></table:table-cell></table:table-row></table:table>";
    let office = "application/vnd.openxmlformats-officedocument";
    let open = "application/vnd.oasis.opendocument";
    // Name, content, MIME type, text.
    let cases = [
        ("a.docx", word(&body), format!("{office}.wordprocessingml.document"), "One & two\na\tb\nc\nx\ty\n1\t2\n"),
        (
            "b.odt",
            open_document(
                "text",
                "<text:h>Title</text:h><text:p>a<text:s text:c=\"2\"/>b<text:tab/>c<text:span>d</text:span></text:p>",
            ),
            format!("{open}.text"),
            "Title\na  b\tcd\n",
        ),
        ("c.ods", open_document("spreadsheet", table), format!("{open}.spreadsheet"), "[sheet T]\n\t\tv\n"),
        (
            "d.xlsx",
            workbook(),
            format!("{office}.spreadsheetml.sheet"),
            "[sheet Costs & more]\nName\t\ttwo runs\n1.5\t2024-03-15 12:00:00\t1900-02-28\tTRUE\ninline\tresult\n",
        ),
        (
            "e.html",
            b"<!DOCTYPE html><h1>Head</h1><script>no</script><p>Some <b>text</b>".to_vec(),
            "text/html".into(),
            "# Head\n\nSome **text**",
        ),
        ("f.csv", b"a;b\n1;2\n".to_vec(), "text/plain".into(), "a;b\n1;2\n"),
    ];
    let (mut agent, session) = home.session(json!([{"text": "read"}]), &[]).await;
    let mut links = Vec::new();
    for (name, bytes, kind, text) in &cases {
        let added = add(&mut agent, &session, name, bytes).await;
        assert_eq!((&added["mimeType"], &added["preview"]), (&json!(kind), &json!(text.trim())), "{name}");
        let got = agent.call("_nuncio/attachment/get", json!({"sessionId": session, "name": name})).await;
        assert_eq!(got["text"].as_str().unwrap().trim(), text.trim(), "{name}");
        links.push(json!({"type": "resource_link", "name": name, "uri": added["uri"]}));
    }
    let listed = agent.call("_nuncio/attachment/list", json!({"sessionId": session})).await;
    let previews: Vec<&Value> = listed["attachments"].as_array().unwrap().iter().map(|one| &one["preview"]).collect();
    assert_eq!(previews, cases.iter().map(|(.., text)| json!(text.trim())).collect::<Vec<_>>().iter().collect::<Vec<_>>());
    agent.call("session/prompt", json!({"sessionId": session, "prompt": links})).await;
    let parts = agent.call("_nuncio/session/messages", json!({"sessionId": session})).await["messages"][0]["parts"].clone();
    for (part, (name, bytes, kind, text)) in parts.as_array().unwrap().iter().zip(&cases) {
        let text = if *name == "e.html" { std::str::from_utf8(bytes).unwrap() } else { *text };
        assert_eq!((&part["type"], &part["mimeType"], &part["text"]), (&json!("resource"), &json!(kind), &json!(text)), "{name}");
    }
    // A long text is truncated; a damaged document and one without text are stored without one.
    add(&mut agent, &session, "long.docx", &long).await;
    let text = agent.call("_nuncio/attachment/get", json!({"sessionId": session, "name": "long.docx"})).await["text"].clone();
    assert!(text.as_str().unwrap().len() < 300_000 && text.as_str().unwrap().ends_with("limits of documents]"), "{text}");
    let damaged = [&word(&body)[..200], b"word/document.xml"].concat();
    for (name, bytes) in [("damaged.docx", damaged), ("empty.docx", word(""))] {
        let added = add(&mut agent, &session, name, &bytes).await;
        let got = agent.call("_nuncio/attachment/get", json!({"sessionId": session, "name": name})).await;
        assert!(added.get("preview").is_none() && got.get("text").is_none(), "{added} {got}");
    }
    let out = home.data().join("out");
    assert_eq!(home.run(&["sessions", "export", &session, "--layout", out.to_str().unwrap()], "").await.code, 0);
    // The model comes from a flag, not from an option of the session.
    let exported: Value = serde_json::from_slice(&std::fs::read(out.join("session.json")).unwrap()).unwrap();
    assert!(exported["model"].as_str().unwrap().starts_with("scripted:"), "{exported}");
    agent.finish().await;
}

#[tokio::test]
async fn invalid_names_are_refused() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([]), &[]).await;
    add(&mut agent, &session, "there", b"").await;
    std::fs::create_dir_all(home.data().join("artifacts").join(&session)).unwrap();
    for kind in ["attachments", "artifacts"] {
        std::os::unix::fs::symlink("/etc/passwd", home.data().join(kind).join(&session).join("link")).unwrap();
    }
    let long = "x".repeat(256);
    for name in ["", ".", "..", ".hidden", "a/b", "/etc/passwd", "../there", "a\0b", "a\nb", &long] {
        let get = json!({"sessionId": session, "name": name});
        let put = json!({"sessionId": session, "name": name, "data": ""});
        refused(
            &mut agent,
            &[
                ("_nuncio/attachment/add", put, -32602, "name"),
                ("_nuncio/attachment/get", get.clone(), -32602, "name"),
                ("_nuncio/artifact/get", get, -32602, "name"),
            ],
        )
        .await;
    }
    for name in ["link", "missing"] {
        let get = json!({"sessionId": session, "name": name});
        refused(&mut agent, &[("_nuncio/attachment/get", get.clone(), -32002, name), ("_nuncio/artifact/get", get, -32002, name)])
            .await;
    }
    refused(
        &mut agent,
        &[
            ("_nuncio/attachment/add", json!({"sessionId": "x", "name": "a", "data": ""}), -32002, "x"),
            ("_nuncio/attachment/add", json!({"sessionId": session, "name": "a", "data": "*"}), -32602, "data"),
            (
                "_nuncio/attachment/add",
                json!({"sessionId": session, "name": "a", "data": STANDARD.encode(vec![0; (10 << 20) + 1])}),
                -32012,
                "10 MiB",
            ),
            ("_nuncio/artifact/list", json!({"sessionId": "../x"}), -32002, "x"),
        ],
    )
    .await;
    let longest = "y".repeat(255);
    add(&mut agent, &session, &longest, b"").await;
    let second = add(&mut agent, &session, &longest, b"").await;
    assert_eq!(second["name"], format!("{}-2", &longest[..253]));
    assert_eq!(agent.call("_nuncio/artifact/list", json!({"sessionId": session})).await, json!({"artifacts": []}));
    agent.finish().await;
}

#[tokio::test]
async fn links_to_attachments_are_resolved_for_model() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"expect": "the text of it", "text": "one"}]), &[]).await;
    let text = add(&mut agent, &session, "a note.txt", b"the text of it").await;
    let image = add(&mut agent, &session, "img", PNG).await;
    let binary = add(&mut agent, &session, "bin", b"\0").await;
    let other = agent.new_session(&home).await;
    let foreign = add(&mut agent, &other, "a note.txt", b"the text of another").await;
    let link = |added: &Value| json!({"type": "resource_link", "name": "x", "uri": added["uri"]});
    let prompt = json!([link(&text), link(&image), link(&binary), link(&foreign)]);
    agent.call("session/prompt", json!({"sessionId": session, "prompt": prompt})).await;
    let parts = json!([link(&image)]);
    agent.call("_nuncio/session/message", json!({"sessionId": session, "parts": parts, "autoRun": false})).await;
    let messages = agent.call("_nuncio/session/messages", json!({"sessionId": session})).await["messages"].clone();
    let picture = json!({"type": "image", "mimeType": "image/png", "data": STANDARD.encode(PNG)});
    assert_eq!(
        messages[0]["parts"],
        json!([
            {"type": "resource", "uri": text["uri"], "mimeType": "text/plain", "text": "the text of it"},
            picture,
            {
                "type": "resource_link",
                "name": "x",
                "uri": binary["uri"],
                "mimeType": "application/octet-stream",
                "description": format!("stored as {}", home.data().join("attachments").join(&session).join("bin").display()),
            },
            {"type": "resource_link", "name": "x", "uri": foreign["uri"]},
        ])
    );
    assert_eq!(messages[2]["parts"], json!([picture]));
    agent.finish().await;
}

#[tokio::test]
async fn tools_read_attachments_and_create_artifacts() {
    let home = Home::new();
    let path = |session: &str| home.data().join("attachments").join(session).join("a.txt");
    let (mut agent, session) = home.session(json!([]), &[]).await;
    add(&mut agent, &session, "a.txt", b"what it says\n").await;
    let steps = json!([
        {"tool_calls": [
            {"name": "read", "input": {"file_path": path(&session)}},
            {"name": "bash", "input": {"command": "yes | head -n 50000"}},
        ]},
        {"expect": "what it says", "text": "done"},
    ]);
    let model = home.script(steps);
    agent.call("session/set_config_option", json!({"sessionId": session, "configId": "model", "value": model})).await;
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    assert_eq!(agent.frames.iter().filter(|frame| frame["method"] == "session/request_permission").count(), 1, "only the command");
    let listed = agent.call("_nuncio/artifact/list", json!({"sessionId": session})).await;
    let artifact = &listed["artifacts"][0];
    assert_eq!((&artifact["size"], &artifact["mimeType"]), (&json!(100_000), &json!("text/plain")), "{listed}");
    assert!(artifact["modifiedAtMs"].is_u64());
    let got = agent.call("_nuncio/artifact/get", json!({"sessionId": session, "name": artifact["name"]})).await;
    assert_eq!(STANDARD.decode(got["data"].as_str().unwrap()).unwrap(), "y\n".repeat(50_000).as_bytes());
    agent.finish().await;
}
