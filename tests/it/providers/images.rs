//! Images that a provider does not accept are converted, or are described in text.

use serde_json::{Value, json};

use super::bedrock;
use harness::images::{bitmap, gif, images_of, png};
use harness::provider::session::{connect, home};
use harness::provider::{Exchange, Protocol};
use harness::text;
use harness::wires::{WIRES, Wire};

fn wire(protocol: Protocol) -> &'static Wire {
    WIRES.iter().find(|wire| wire.protocol == protocol).unwrap()
}

fn image(data: &str) -> Value {
    json!({"type": "image", "mimeType": "image/png", "data": data})
}

fn prompt(session: &str, images: &[&str]) -> Value {
    let parts: Vec<Value> = images.iter().map(|data| image(data)).chain([json!({"type": "text", "text": "look"})]).collect();
    json!({"sessionId": session, "prompt": parts})
}

/// Sends each prompt of images, and checks that the provider accepts all requests. Returns the body
/// of the last request and the notices.
async fn sent(wire: &Wire, prompts: &[&[&str]]) -> (Value, Vec<String>) {
    let (home, provider, _) = home(wire, prompts.iter().map(|_| Exchange::events(wire.plain)).collect()).await;
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    for images in prompts {
        agent.call("session/prompt", prompt(&session, images)).await;
    }
    agent.finish().await;
    let log = home.log(&session).await;
    let notices = log.iter().filter(|event| event["body"]["code"] == "image_replaced");
    let notices = notices.map(|notice| format!("{}: {}", notice["body"]["title"], notice["body"]["description"])).collect();
    (provider.finish().await.pop().unwrap().body, notices)
}

/// Asserts that the request has images of this type, at most as wide and high.
fn assert_images(case: &str, body: &Value, count: usize, mime: &str, edge_max: u32) {
    let images = images_of(body);
    assert_eq!(images.len(), count, "{case}");
    for (header, data) in images {
        let (width, height) = header.size.unwrap();
        assert!(header.mime == mime && width.max(height) <= edge_max, "{case}: {} {width} x {height}", header.mime);
        assert!(data.len() < 4_000_000, "{case}: {} bytes", data.len());
    }
}

#[tokio::test]
async fn image_with_too_many_pixels_is_made_smaller() {
    let wide = png(9000, 30, false);
    for wire in WIRES {
        let (body, notices) = sent(wire, &[&[&wide]]).await;
        assert_images(wire.model, &body, 1, "image/png", 2000);
        assert_eq!(notices, Vec::<String>::new(), "{}", wire.model);
    }
}

#[tokio::test]
async fn image_of_a_type_that_the_provider_does_not_accept_is_converted() {
    let bitmap = bitmap(3, 2);
    for (protocol, image) in [
        (Protocol::Gemini, gif()),
        (Protocol::Gemini, bitmap.as_str()),
        (Protocol::Anthropic, &bitmap),
        (Protocol::OpenaiChat, &bitmap),
        (Protocol::OpenaiResponses, &bitmap),
    ] {
        let (body, _) = sent(wire(protocol), &[&[image]]).await;
        assert_images(protocol.as_str(), &body, 1, "image/png", 3);
    }
}

#[tokio::test]
async fn image_with_too_many_bytes_is_made_smaller() {
    let large = png(2200, 2200, true);
    assert!(large.len() > 5_000_000);
    let message = bedrock::first_message(json!([image(&large), {"type": "text", "text": "look"}])).await;
    assert_images("bedrock", &message, 1, "image/jpeg", 2000);
}

/// Bedrock accepts 20 images in a message, and any number of them in a request.
#[tokio::test]
async fn images_in_excess_of_the_limit_of_a_message_become_text() {
    let part = image(&png(20, 20, false));
    let message = bedrock::first_message(json!(vec![part.clone(); 23])).await;
    assert_images("bedrock", &message, 20, "image/png", 20);
    assert_eq!(message.to_string().matches("which cannot be shown: the message has too many images").count(), 3, "{message}");
    let (body, notices) = sent(wire(Protocol::Anthropic), &[&[png(20, 20, false).as_str(); 23]]).await;
    assert_images("anthropic", &body, 23, "image/png", 20);
    assert!(notices.is_empty(), "{notices:?}");
}

/// Claude accepts fewer pixels per image in a request with more than 20 images.
#[tokio::test]
async fn many_images_have_fewer_pixels() {
    let (single, few) = (png(2500, 20, false), png(2400, 10, false));
    let (body, _) = sent(wire(Protocol::Anthropic), &[&[&single]]).await;
    assert_eq!(images_of(&body)[0].1, single);
    let many = vec![few.as_str(); 20];
    let (body, _) = sent(wire(Protocol::Anthropic), &[&[&single], &many]).await;
    assert_images("21 images", &body, 21, "image/png", 2000);
    // Other providers have no such limit.
    let (body, _) = sent(wire(Protocol::OpenaiChat), &[&[&single], &many]).await;
    assert_eq!(images_of(&body)[0].1, single);
}

#[tokio::test]
async fn image_that_cannot_be_converted_is_described_once() {
    let empty = png(0, 0, false);
    let header = &png(20, 20, false)[..32];
    // More than a reader may decode.
    let huge = png(30_000, 2_000, false);
    for (data, why) in [
        (empty.as_str(), "damaged"),
        (&header[..24], "damaged"),
        (&huge, "it has too many pixels, and there is no smaller copy: it has more than 50 million pixels"),
        ("bm90IGFuIGltYWdl", "its type is not known"),
        ("%%%%", "damaged"),
        ("!!", "damaged"),
    ] {
        let (body, notices) = sent(wire(Protocol::Anthropic), &[&[data], &[data]]).await;
        assert_eq!(images_of(&body).len(), 0, "{why}");
        assert!(body.to_string().contains(why), "{why}: {body}");
        assert!(notices.len() == 1 && notices[0].contains(why), "{why}: {notices:?}");
    }
}

/// Providers find a conversation in their cache if its bytes are the same.
#[tokio::test]
async fn converted_image_has_the_same_bytes_after_a_restart() {
    let wire = wire(Protocol::Anthropic);
    let (home, provider, _) = home(wire, vec![Exchange::events(wire.plain), Exchange::events(wire.plain)]).await;
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    let wide = png(9000, 300, true);
    agent.call("session/prompt", prompt(&session, &[&wide])).await;
    agent.finish().await;
    let mut agent = connect(&home).await;
    let (stop, updates) = agent.turn(&session, "and now?").await;
    assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "Hello"));
    agent.finish().await;
    let received = provider.finish().await;
    let [before, after] = [0, 1].map(|index| images_of(&received[index].body).remove(0).1);
    assert!(before == after && before != wide);
    // The log has the original.
    let log = home.log(&session).await;
    assert!(log.iter().any(|event| event["body"]["parts"][0]["data"] == wide.as_str()));
}
