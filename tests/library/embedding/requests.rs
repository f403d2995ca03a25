//! Requests that a model of the embedding program receives: images, documents, the thinking level,
//! outputs of tools and changes of hooks.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use nuncio::content::{Part, StopReason, ToolContent, ToolKind};
use nuncio::event::{Body, HookEvent, ToolEnd, ToolStart};
use nuncio::{
    Chunk, ChunkStream, FailurePolicy, Hook, HookEffect, HookError, HookRequest, Kind, Media, Message, Model, ModelError,
    ModelProvider, ModelRequest, Output, Retry, Thinking, Tool, ToolAccess, ToolContext, ToolError,
};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{builder, events, outputs};
use harness::Home;

const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=";

fn pixel() -> Part {
    Part::Image { mime_type: "image/png".into(), data: PIXEL.into() }
}

/// A model that keeps its requests. Each answer is a tool call, with a name and an input; without
/// any left, the answer is the model's id.
#[derive(Clone)]
struct Recorder {
    id: String,
    calls: Arc<Mutex<VecDeque<(String, Value)>>>,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
}

impl Recorder {
    fn new(id: &str, calls: &[(&str, Value)]) -> Recorder {
        let calls = calls.iter().map(|(name, input)| ((*name).to_owned(), input.clone())).collect::<VecDeque<_>>();
        Recorder { id: id.into(), calls: Arc::new(Mutex::new(calls)), requests: Arc::default() }
    }

    /// All parts of the messages of the user, and of the outputs of tools, in the last request.
    fn parts(&self) -> Vec<Part> {
        let requests = self.requests.lock();
        let parts = |message: &Arc<Message>| match &**message {
            Message::User(parts) => parts.clone(),
            Message::ToolResults(results) => results.iter().flat_map(|result| result.output.clone()).collect(),
            _ => Vec::new(),
        };
        requests.last().unwrap().messages.iter().flat_map(parts).collect()
    }
}

impl Model for Recorder {
    fn id(&self) -> &str {
        &self.id
    }

    fn context_window(&self) -> u64 {
        100_000
    }

    fn media(&self) -> Media {
        Media { pdf: true, ..Media::default() }
    }

    fn stream(&self, request: ModelRequest) -> ChunkStream {
        self.requests.lock().push(request);
        let chunk = match self.calls.lock().pop_front() {
            Some((name, input)) => Chunk::ToolCall { id: "1".into(), name, input: input.to_string(), state: None },
            None => Chunk::Text(self.id.clone()),
        };
        stream::iter([chunk, Chunk::Stop(StopReason::EndTurn)].map(Ok)).boxed()
    }
}

#[tokio::test]
async fn model_receives_media_and_the_thinking_level() {
    let home = Home::new();
    let model = Recorder::new("own/one", &[]);
    let agent = builder(&home, json!([])).model_with(model.clone()).thinking(Thinking::High).build().await.unwrap();
    let session = agent.session().await.unwrap();
    let document = |name: Option<&str>| Part::Document {
        mime_type: "application/pdf".into(),
        name: name.map(str::to_owned),
        data: "JVBERi0=".into(),
        text: None,
    };
    let page = Part::Resource { uri: "note:1".into(), mime_type: None, text: "a note".into() };
    let sent = [Part::text("Compare"), pixel(), document(Some("50%25 of a/b ü.pdf")), page];
    let mut turn = session.prompt_with(sent.to_vec()).await.unwrap();
    assert_eq!(turn.finish().await.unwrap(), "own/one");
    let received = model.parts();
    assert!(received.windows(sent.len()).any(|parts| parts == sent), "{received:?}");
    assert_eq!(model.requests.lock()[0].thinking, Thinking::High);

    let sound = Part::Audio { mime_type: "audio/wav".into(), data: "AAAA".into() };
    let unnamed = session.prompt_with(vec![document(None)]).await.unwrap().finish().await;
    assert_eq!(unnamed.unwrap(), "own/one");
    assert_eq!(model.parts().last(), Some(&document(Some("document"))));
    for refused in [vec![sound], vec![]] {
        let error = session.prompt_with(refused).await.unwrap().finish().await.unwrap_err();
        assert_eq!(error.kind, Kind::InvalidParams, "{error}");
    }
    assert_eq!(model.requests.lock().len(), 2);
    agent.close().await.unwrap();
}

/// A provider with the models `NAME/a` and `NAME/b`.
struct Pair(Recorder);

impl ModelProvider for Pair {
    fn open(&self, id: &str) -> Result<Arc<dyn Model>, ModelError> {
        if !id.ends_with("/a") && !id.ends_with("/b") {
            return Err(ModelError::new(Retry::Never, format!("there is no model {id}")));
        }
        Ok(Arc::new(Recorder { id: id.into(), ..self.0.clone() }))
    }
}

#[tokio::test]
async fn provider_opens_its_models_by_their_ids() {
    let home = Home::new();
    // The catalogue has a provider with the second name, which would need a key.
    for (name, id, answer) in [("own", "own/b", "own/b"), ("anthropic", "anthropic/a", "anthropic/a"), ("own", "own/c", "")] {
        let provider = Pair(Recorder::new("", &[]));
        let agent = builder(&home, json!([])).provider(name, provider).model(id).build().await.unwrap();
        let answered = agent.session().await.unwrap().prompt("go").await.unwrap().finish().await;
        match answered {
            Ok(text) => assert_eq!(text, answer, "{id}"),
            Err(error) => assert!(answer.is_empty() && error.message.contains("there is no model own/c"), "{id}: {error}"),
        }
        agent.close().await.unwrap();
    }
}

/// Takes a photograph.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Subject {
    subject: String,
}

struct Camera;

impl Tool for Camera {
    type Input = Subject;

    fn name(&self) -> &str {
        "camera"
    }

    fn access(&self) -> ToolAccess {
        ToolAccess::Nothing
    }

    fn title(&self, input: &Subject) -> String {
        format!("Photograph {}", input.subject)
    }

    fn kind(&self) -> ToolKind {
        ToolKind::Fetch
    }

    async fn run(&self, input: Subject, _: &ToolContext<'_>) -> Result<Output, ToolError> {
        match input.subject.as_str() {
            // JSON has no such keys.
            "ghost" => Output::json(&[((1, 2), 3)].into_iter().collect::<std::collections::BTreeMap<_, _>>()),
            "text" => Ok(Output::text("a text").with_image("image/png", PIXEL)),
            "only" => Ok(Output::default().with_image("image/png", PIXEL).shown_as("an image")),
            _ => Ok(Output::json(&input)?.with_image("image/png", PIXEL).shown_as("taken")),
        }
    }
}

/// The content that users see, and the output that the model receives.
#[tokio::test]
async fn output_has_json_images_and_a_text_for_users() {
    let text = |text: &str| ToolContent::Content { content: Part::text(text) };
    let image = ToolContent::Content { content: pixel() };
    let cases = [
        ("cat", vec![Part::text("{\n  \"subject\": \"cat\"\n}"), pixel()], vec![text("taken"), image.clone()]),
        ("text", vec![Part::text("a text"), pixel()], vec![text("a text"), image.clone()]),
        ("only", vec![pixel()], vec![text("an image"), image.clone()]),
    ];
    for (subject, output, content) in cases {
        let home = Home::new();
        let model = Recorder::new("own/one", &[("camera", json!({"subject": subject}))]);
        let agent = builder(&home, json!([])).model_with(model.clone()).tool(Camera).build().await.unwrap();
        let mut turn = agent.session().await.unwrap().prompt("go").await.unwrap();
        let all = events(&mut turn).await.unwrap();
        let (mut started, mut completed) = (None, None);
        for event in &all {
            match &event.body {
                Body::ToolStarted(ToolStart { title, kind, .. }) => started = Some((title.clone(), *kind)),
                Body::ToolCompleted(ToolEnd { output, content, .. }) => completed = Some((output.clone(), content.clone())),
                _ => {}
            }
        }
        assert_eq!(started, Some((format!("Photograph {subject}"), ToolKind::Fetch)));
        assert_eq!(completed, Some((output.clone(), content)), "{subject}");
        let received = model.parts();
        assert!(received.ends_with(&output), "{subject}: {received:?}");
        agent.close().await.unwrap();
    }

    let home = Home::new();
    let model = Recorder::new("own/one", &[("camera", json!({"subject": "ghost"}))]);
    let agent = builder(&home, json!([])).model_with(model).tool(Camera).build().await.unwrap();
    let mut turn = agent.session().await.unwrap().prompt("go").await.unwrap();
    let output = outputs(&events(&mut turn).await.unwrap()).concat();
    assert!(output.starts_with("internal error: ") && output.contains("key"), "{output}");
    agent.close().await.unwrap();
}

/// A hook that replaces the input of the tool `camera`, or fails for the subject `nothing`.
struct Retouch {
    policy: FailurePolicy,
}

impl Hook for Retouch {
    fn event(&self) -> HookEvent {
        HookEvent::ToolExecuteBefore
    }

    fn name(&self) -> &str {
        "retouch"
    }

    fn matches(&self, subject: &str) -> bool {
        subject == "camera"
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(30)
    }

    fn on_failure(&self) -> FailurePolicy {
        self.policy
    }

    fn run<'a>(&'a self, request: &'a HookRequest, _: &'a CancellationToken) -> BoxFuture<'a, Result<HookEffect, HookError>> {
        Box::pin(async {
            let input = &request.tool.as_ref().unwrap().input;
            match input["subject"].as_str() {
                Some("nothing") => Err(HookError("there is nothing".into())),
                subject => Ok(HookEffect::Input(json!({"subject": format!("{} in color", subject.unwrap())}))),
            }
        })
    }
}

/// The hook runs after that of the settings, which changes the subject to `tree`.
#[tokio::test]
async fn hook_changes_calls_after_the_hooks_of_the_settings() {
    let script = "printf %s '{\"input\": {\"subject\": \"tree\"}}'";
    let command = json!(["sh", "-c", script]);
    let settings = format!("[[hooks]]\nevent = \"tool.execute.before\"\nmatch = \"camera\"\ncommand = {command}\n");
    let cases = [
        (settings.as_str(), "cat", FailurePolicy::Closed, "\"tree in color\""),
        ("", "cat", FailurePolicy::Closed, "\"cat in color\""),
        ("", "nothing", FailurePolicy::Closed, "there is nothing"),
        ("", "nothing", FailurePolicy::Open, "\"nothing\""),
    ];
    for (settings, subject, policy, expected) in cases {
        let home = Home::new();
        let model = Recorder::new("own/one", &[("camera", json!({"subject": subject})), ("read", json!({"file_path": "a"}))]);
        let agent = builder(&home, json!([])).settings(settings).model_with(model).tool(Camera).hook(Retouch { policy });
        let agent = agent.build().await.unwrap();
        let mut turn = agent.session().await.unwrap().prompt("go").await.unwrap();
        let all = events(&mut turn).await.unwrap();
        let output = &outputs(&all)[0];
        assert!(output.contains(expected), "{expected}: {output}");
        let hooks = all.iter().filter(|event| matches!(&event.body, Body::HookCompleted { hook, .. } if hook == "retouch"));
        assert_eq!(hooks.count(), 1, "the hook does not match `read`");
        agent.close().await.unwrap();
    }
}
