//! Hostile office and PDF files: each is an error of the command or of the prompt that attaches it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::hostile_pages::SLOW;
use harness::{Home, peak_kib};

/// Maximum memory of nuncio itself while it has a file of 10 MiB read, in KiB.
const OWN_KIB_MAX: u64 = 160 << 10;

/// A zip file with these entries.
fn package(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut file = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in entries {
        let options = zip::write::SimpleFileOptions::default();
        let options = match *name {
            "mimetype" => options.compression_method(zip::CompressionMethod::Stored),
            _ => options.compression_method(zip::CompressionMethod::Deflated).compression_level(Some(1)),
        };
        file.start_file(*name, options).unwrap();
        std::io::Write::write_all(&mut file, content.as_bytes()).unwrap();
    }
    file.finish().unwrap().into_inner()
}

/// An Excel workbook with these sheets, of which all have the same cells.
fn workbook(sheets: usize, strings: &str, styles: &str, sheet: &str) -> Vec<u8> {
    let names: String = (0..sheets).map(|number| format!("<sheet name='{number}' r:id='a'/>")).collect();
    package(&[
        ("xl/workbook.xml", &format!("<workbook>{names}</workbook>")),
        ("xl/_rels/workbook.xml.rels", "<r><Relationship Id='a' Target='worksheets/1.xml'/></r>"),
        ("xl/sharedStrings.xml", strings),
        ("xl/styles.xml", styles),
        ("xl/worksheets/1.xml", sheet),
    ])
}

/// The files, with the reason of the error; `None` if the text is read, or truncated.
fn office() -> Vec<(&'static str, Vec<u8>, Option<&'static str>)> {
    let long = "x".repeat(63 << 20);
    let formats: String = (0..800_000).map(|number| format!("<numFmt numFmtId='{number}' formatCode='{number}'/>")).collect();
    // The table of this many entries grows beyond the memory of a reader.
    let names = (0..2_000_000).map(|number| format!("<Relationship Id='{number}'/>")).collect::<String>();
    let cell = "<row><c t='s'><v>0</v></c></row>";
    let open = |body: &str| package(&[("mimetype", "application/vnd.oasis.opendocument.text"), ("content.xml", body)]);
    vec![
        ("one shared string", workbook(1, &format!("<sst><si><t>{long}</t></si></sst>"), "<s/>", cell), None),
        ("small shared strings", workbook(1, &"<si><t>a</t></si>".repeat(3_900_000), "<s/>", cell), None),
        ("formats", workbook(1, "<s/>", &formats, cell), None),
        ("relations", package(&[("xl/workbook.xml", "<s/>"), ("xl/_rels/workbook.xml.rels", &names)]), Some("ran out of memory")),
        ("one cell", workbook(1, "<s/>", "<s/>", &format!("<c><v>{long}</v></c>")), Some("ran out of memory")),
        ("sheets", workbook(5000, "<s/>", "<s/>", &format!("<!--{}-->", "x".repeat(8 << 20))), Some(SLOW)),
        ("references", open(&format!("<text:p>{}</text:p>", "&#120;".repeat(1_000_000))), None),
    ]
}

#[tokio::test]
async fn hostile_office_files_are_errors_of_the_command() {
    let home = Home::new();
    let model = home.script(json!([{"text": "read"}]));
    let mut wrong = Vec::new();
    for (name, bytes, error) in office() {
        let path = home.work().join(name);
        std::fs::write(&path, &bytes).unwrap();
        let ran = home.run(&["run", "--model", &model, "--file", path.to_str().unwrap(), "look"], "").await;
        let failed = |reason: &str| ran.code == 2 && ran.stderr.contains(reason);
        // The allocator of musl copies a text that grows.
        let copies = cfg!(target_env = "musl") && name == "one shared string" && failed("ran out of memory");
        let holds = error.map_or(ran.code == 0, failed) || failed(SLOW) || copies;
        if !holds {
            wrong.push(format!("{name}, {} bytes: {ran:?}", bytes.len()));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// A PDF document with these objects, the first of which is the catalogue.
fn pdf(objects: &[Vec<u8>]) -> Vec<u8> {
    let (mut file, mut table) = (b"%PDF-1.7\n".to_vec(), String::new());
    for (index, object) in objects.iter().enumerate() {
        table.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.extend([format!("{} 0 obj\n", index + 1).as_bytes(), object, b"\nendobj\n"].concat());
    }
    let (size, start) = (objects.len() + 1, file.len());
    let end =
        format!("xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n");
    file.extend(end.as_bytes());
    file
}

/// A compressed stream.
fn stream(entries: &str, content: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, content).unwrap();
    let packed = packed.finish().unwrap();
    let head = format!("<< /Filter /FlateDecode /Length {} {entries} >>\nstream\n", packed.len());
    [head.as_bytes(), &packed, b"\nendstream"].concat()
}

fn pdfs() -> Vec<(&'static str, Vec<u8>)> {
    let catalogue = || b"<< /Type /Catalog /Pages 2 0 R >>".to_vec();
    let page = |contents: &str| format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents {contents} >>").into_bytes();
    let pages = |kids: &str, count: usize| format!("<< /Type /Pages /Kids [{kids}] /Count {count} >>").into_bytes();
    let nested = |open: &str| pdf(&[catalogue(), pages("3 0 R", 1), open.repeat(1_000_000).into_bytes()]);
    let content = |bytes: Vec<u8>| pdf(&[catalogue(), pages("3 0 R", 1), page("4 0 R"), stream("", &bytes)]);
    let mut kids = vec![catalogue(), pages(&(0..20_000).map(|page| format!("{} 0 R ", page + 4)).collect::<String>(), 20_000)];
    kids.push(stream("", &b"q Q ".repeat(3 << 20)));
    kids.extend((0..20_000).map(|_| page("3 0 R")));
    vec![
        ("nested arrays", nested("[")),
        ("nested dictionaries", nested("<</A")),
        ("nested strings", nested("(")),
        ("nested arrays in a page", content(b"[".repeat(4_000_000))),
        ("a long page", content(vec![b' '; 64 << 20])),
        ("objects in a long stream", {
            let packed = stream("/Type /ObjStm /N 1 /First 4", &[b"9 0 ".to_vec(), vec![b' '; 270 << 20]].concat());
            pdf(&[catalogue(), pages("3 0 R", 1), page("4 0 R"), packed])
        }),
        ("pages in a circle", pdf(&[catalogue(), pages("2 0 R 2 0 R", 2)])),
        ("pages of one content", pdf(&kids)),
    ]
}

#[tokio::test]
async fn hostile_pdf_files_are_errors_of_the_prompt() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([]), &[]).await;
    for (name, bytes) in pdfs() {
        assert!(bytes.len() < 10 << 20, "{name}: {}", bytes.len());
        let blob = json!({"uri": "file:///x.pdf", "mimeType": "application/pdf", "blob": STANDARD.encode(&bytes)});
        let prompt = json!({"sessionId": session, "prompt": [{"type": "resource", "resource": blob}]});
        let answer = agent.request("session/prompt", prompt).await;
        let error = answer.expect_err(name).to_string();
        assert!(error.contains("cannot read the PDF document"), "{name}: {error}");
        assert_eq!(agent.turn(&session, "next").await.0, "end_turn", "{name}");
    }
    assert!(peak_kib(agent.pid) < OWN_KIB_MAX, "{} KiB", peak_kib(agent.pid));
    agent.finish().await;
}
