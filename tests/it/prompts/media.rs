//! Documents and audio in the requests of each protocol.

use serde_json::{Value, json};

use crate::providers::bedrock;
use harness::Home;
use harness::provider::Exchange;
use harness::provider::session;
use harness::provider::session::{connect, conversation};
use harness::wires::WIRES;

/// The parts of a prompt with a PDF document and with audio.
fn prompt(session: &str, pdf: bool, audio: bool) -> Value {
    let mut parts = vec![json!({"type": "text", "text": "look"})];
    let blob = json!({"uri": "file:///tmp/a%20plan.pdf", "mimeType": "application/pdf", "blob": "JVBERi0="});
    parts.extend(pdf.then(|| json!({"type": "resource", "resource": blob})));
    parts.extend(audio.then(|| json!({"type": "audio", "mimeType": "audio/wav", "data": "UklGRg=="})));
    json!({"sessionId": session, "prompt": parts})
}

/// Sends a prompt to a model with all abilities. Returns the last parts of the first message.
async fn sent(index: usize, pdf: bool, audio: bool) -> Result<Value, Value> {
    let wire = &WIRES[index];
    let (home, provider, name) = session::home(wire, vec![Exchange::events(wire.plain)]).await;
    let abilities = "abilities = [\"tools\", \"images\", \"pdf\", \"audio\"]";
    home.config(&format!("{}\n[models.\"test/{name}\"]\n{abilities}\n", home.config_text()));
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    let answer = agent.request("session/prompt", prompt(&session, pdf, audio)).await;
    agent.finish().await;
    answer?;
    let received = provider.finish().await;
    let message = conversation(&received[0]).into_iter().rfind(|message| message["role"] == "user").unwrap();
    Ok(message)
}

#[tokio::test]
async fn documents_and_audio_are_sent_in_the_format_of_the_protocol() {
    let cases = [
        (
            0,
            true,
            false,
            "content",
            json!([{"type": "document", "title": "a plan pdf",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}]),
        ),
        (
            1,
            true,
            true,
            "content",
            json!([
            {"type": "file", "file": {"filename": "a plan.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
            {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}]),
        ),
        (
            2,
            true,
            false,
            "content",
            json!([
            {"type": "input_file", "filename": "a plan.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}]),
        ),
        (
            3,
            true,
            true,
            "parts",
            json!([
            {"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0="}},
            {"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}}]),
        ),
    ];
    for (index, pdf, audio, field, expected) in cases {
        let mut message = sent(index, pdf, audio).await.unwrap();
        let parts = message[field].as_array_mut().unwrap();
        parts.iter_mut().for_each(|part| drop(part.as_object_mut().unwrap().remove("cache_control")));
        let expected = expected.as_array().unwrap();
        assert_eq!(&parts[parts.len() - expected.len()..], expected, "{index}");
    }
}

#[tokio::test]
async fn bedrock_gets_documents() {
    let message = bedrock::first_message(prompt("", true, false)["prompt"].clone()).await;
    let expected = json!({"document": {"format": "pdf", "name": "a plan pdf", "source": {"bytes": "JVBERi0="}}});
    assert!(message["content"].as_array().unwrap().contains(&expected), "{message}");
}

#[tokio::test]
async fn part_that_the_model_cannot_read_is_an_error() {
    for (index, pdf, audio, name) in [(0, false, true, "audio"), (4, false, true, "audio"), (4, true, false, "PDF")] {
        let error = sent(index, pdf, audio).await.unwrap_err();
        assert!(error["message"].as_str().unwrap().contains(name), "{error}");
    }
}

#[tokio::test]
async fn rejected_message_is_not_part_of_the_conversation() {
    let home = Home::new();
    let steps = json!([{"text": "ok"}]);
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.request("session/prompt", prompt(&session, false, true)).await.unwrap_err();
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    agent.finish().await;
    let log = home.log(&session).await;
    let rejected = super::bodies(&log, "message.completed")[0];
    assert_eq!((&rejected["discarded"], &rejected["parts"][1]["type"]), (&json!(true), &json!("audio")), "{rejected}");
}

/// A PDF document with a page for each text.
pub fn pdf(pages: &[&str]) -> String {
    let kids: Vec<String> = (0..pages.len()).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_string(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), pages.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_string(),
    ];
    for (page, text) in pages.iter().enumerate() {
        let content = format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET");
        let resources = "/Resources << /Font << /F1 3 0 R >> >>";
        objects.push(format!("<< /Type /Page /Parent 2 0 R {resources} /MediaBox [0 0 612 792] /Contents {} 0 R >>", 5 + 2 * page));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    let mut file = "%PDF-1.4\n".to_string();
    let mut table = String::new();
    for (index, object) in objects.iter().enumerate() {
        table.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", index + 1));
    }
    let (size, start) = (objects.len() + 1, file.len());
    file.push_str(&format!(
        "xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    ));
    file
}

#[tokio::test]
async fn text_of_document_is_sent_to_models_that_do_not_read_it() {
    let home = Home::new();
    let server = home.serve_script(json!([{"text": "ok", "expect": "[page 2]\nWords of the second page"}]), &[]).await;
    let session = server.new_session(&home).await;
    let data = base64(pdf(&["Words of the first page", "Words of the second page"]).as_bytes());
    let added = json!({"name": "a plan.pdf", "data": data});
    let uri = server.post(&format!("/v1/sessions/{session}/attachments"), &added).expect(201).await["uri"].clone();
    let prompt = json!({"prompt": [{"type": "resource_link", "uri": uri, "name": "a plan.pdf"}]});
    server.post(&format!("/v1/sessions/{session}/prompt"), &prompt).expect(200).await;
    for (bytes, why) in [(&b"%PDF-1.4 broken"[..], "cannot read"), (pdf(&[""]).as_bytes(), "no text")] {
        let blob = json!({"uri": "file:///x.pdf", "mimeType": "application/pdf", "blob": base64(bytes)});
        let prompt = json!({"prompt": [{"type": "resource", "resource": blob}]});
        let error = server.post(&format!("/v1/sessions/{session}/prompt"), &prompt).send().await;
        assert_eq!(error.error().0, 400, "{why}");
        assert!(error.json()["error"]["message"].as_str().unwrap().contains(why), "{}", error.json());
    }
    server.stop().await;
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// A cancel does not wait for the preparation of the prompt.
#[tokio::test]
async fn cancel_ends_the_preparation_of_a_prompt() {
    let home = Home::new();
    let work = home.work().display().to_string();
    let key = format!("cd {work}; touch started; sleep 60; touch ended; echo key");
    home.config(&format!(
        "model = \"test/model\"\n[providers.test]\nprotocol = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1\"\n\
         api_key_command = [\"sh\", \"-c\", \"{key}\"]\n"
    ));
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    let id = agent.send("session/prompt", prompt(&session, true, false)).await;
    home.appears("started").await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "cancelled");
    assert_eq!(home.get("ended"), None);
    agent.finish().await;
    let log = home.log(&session).await;
    assert_eq!(super::bodies(&log, "message.completed")[0]["discarded"], true, "{log:#?}");
}
