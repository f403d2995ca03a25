//! A JSON-RPC connection over any byte stream: requests, cancellation, order and barriers, with
//! both framings.

use std::future::ready;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nuncio::internal::error::{Error, Kind, Result};
use nuncio::internal::rpc::{Connection, Dialect, Feed, FrameWriter, Framing, Handler, OverflowPolicy, RequestError, connection};
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const DIALECT: Dialect = Dialect {
    framing: Framing::Lines,
    message_bytes_max: 1 << 20,
    messages_queued_max: 4,
    when_full: OverflowPolicy::PauseReading(Duration::from_secs(60)),
    cancel_method: "$/cancel",
    cancel_id: "request",
    rejects_invalid: true,
};

const DIALECTS: [Dialect; 2] = [DIALECT, Dialect { framing: Framing::Headers, ..DIALECT }];

/// Echoes params, refuses `refuse`, and does not answer `wait` until it is cancelled. Records what
/// it received.
#[derive(Clone, Default)]
struct Recorder {
    received: Arc<Mutex<Vec<String>>>,
    cancelled: Option<mpsc::UnboundedSender<String>>,
}

impl Handler<()> for Recorder {
    fn request(
        &self,
        method: String,
        params: Value,
        cancel: CancellationToken,
    ) -> impl Future<Output = (Result<Value>, ())> + Send + 'static {
        self.received.lock().unwrap().push(method.clone());
        let cancelled = self.cancelled.clone();
        async move {
            match method.as_str() {
                "refuse" => (Err(Error::new(Kind::NotFound, "no such thing")), ()),
                "wait" => {
                    cancel.cancelled().await;
                    cancelled.unwrap().send(params.to_string()).unwrap();
                    (Err(Error::new(Kind::Cancelled, "cancelled")), ())
                }
                _ => (Ok(params), ()),
            }
        }
    }

    fn notification(&self, method: String, _: Value, _: CancellationToken) -> impl Future<Output = ()> + Send + 'static {
        self.received.lock().unwrap().push(method);
        ready(())
    }
}

/// Runs one side of a connection until the other side closes it.
fn start(dialect: Dialect, stream: DuplexStream, handler: Recorder) -> Connection<()> {
    let (input, output) = tokio::io::split(stream);
    let (connection, reader, mut writer) = connection(dialect);
    tokio::spawn(async move { writer.run(output, ()).await });
    tokio::spawn(async move {
        reader.run(input, &handler).await.unwrap();
        reader.finish().await;
    });
    connection
}

fn pair(dialect: Dialect, handler: Recorder) -> Connection<()> {
    let (near, far) = tokio::io::duplex(64);
    start(dialect, far, handler);
    start(dialect, near, Recorder::default())
}

#[tokio::test]
async fn request_returns_the_typed_result_or_the_error_object() {
    for dialect in DIALECTS {
        let near = pair(dialect, Recorder::default());
        let numbers: Vec<u32> = near.request("echo", json!([1, 2]), ()).await.unwrap();
        assert_eq!(numbers, [1, 2]);
        let refused = near.request::<Value>("refuse", json!({}), ()).await;
        assert!(matches!(refused, Err(RequestError::Refused(error)) if error["message"] == "no such thing"));
        let other = near.request::<u32>("echo", json!("text"), ()).await;
        assert!(matches!(other, Err(RequestError::Invalid(_))));
    }
}

#[tokio::test]
async fn dropped_request_is_cancelled_on_the_other_side() {
    for dialect in DIALECTS {
        let (cancelled, mut cancellations) = mpsc::unbounded_channel();
        let near = pair(dialect, Recorder { cancelled: Some(cancelled), ..Recorder::default() });
        let waiting = near.request::<Value>("wait", json!(7), ());
        let done: Value = tokio::select! {
            biased;
            _ = waiting => panic!("the request was answered"),
            done = near.request("echo", json!(8), ()) => done.unwrap(),
        };
        assert_eq!(done, 8);
        assert_eq!(cancellations.recv().await.unwrap(), "7");
    }
}

#[tokio::test]
async fn handlers_start_in_the_order_of_the_messages() {
    for dialect in DIALECTS {
        let handler = Recorder::default();
        let near = pair(Dialect { messages_queued_max: 200, ..dialect }, handler.clone());
        let names: Vec<String> = (0..100).map(|number| format!("n{number}")).collect();
        for name in &names {
            near.notify(name, Value::Null).unwrap();
        }
        near.request::<Value>("last", Value::Null, ()).await.unwrap();
        assert_eq!(handler.received.lock().unwrap()[..100], names);
    }
}

#[tokio::test]
async fn request_fails_when_the_connection_ends() {
    for dialect in DIALECTS {
        let (near, far) = tokio::io::duplex(64);
        let near = start(dialect, near, Recorder::default());
        let waiting = near.request::<Value>("wait", json!(1), ());
        let end = async {
            drop(far);
            near.closed().await;
        };
        let (failed, ()) = tokio::join!(waiting, end);
        assert!(matches!(failed, Err(RequestError::Closed)));
        assert!(near.notify("late", Value::Null).is_err());
    }
}

#[tokio::test]
async fn overflow_ends_a_connection_that_must_not_lose_messages() {
    let (near, _far) = tokio::io::duplex(64);
    let (connection, reader, _writer) = connection::<()>(Dialect { when_full: OverflowPolicy::End, ..DIALECT });
    for _ in 0..DIALECT.messages_queued_max {
        connection.notify("note", Value::Null).unwrap();
    }
    assert!(connection.notify("note", Value::Null).is_err());
    assert!(reader.run(near, &Recorder::default()).await.is_err());
}

/// Numbered messages; a barrier is the number of messages that precede a queued message.
struct Numbers(u32);

impl Feed for Numbers {
    type Barrier = u32;
    type Change = ();

    async fn before(&mut self, barrier: &u32, out: &mut FrameWriter) -> io::Result<()> {
        while self.0 < *barrier {
            self.0 += 1;
            out.notify("number", self.0);
        }
        Ok(())
    }

    async fn after(&mut self, _: u32, _: &mut FrameWriter) {}

    async fn changed(&mut self) {
        std::future::pending().await
    }

    async fn write(&mut self, (): (), _: &mut FrameWriter) -> io::Result<()> {
        Ok(())
    }

    async fn finish(&mut self, out: &mut FrameWriter) -> io::Result<()> {
        out.notify("end", Value::Null);
        Ok(())
    }
}

#[tokio::test]
async fn message_follows_its_barrier() {
    let (near, mut far) = tokio::io::duplex(64 << 10);
    let (connection, reader, mut writer) = connection(DIALECT);
    for barrier in [2, 0, 3] {
        connection.send_barrier(barrier).unwrap();
        connection.notify("note", Value::Null).unwrap();
    }
    drop(reader);
    writer.run(near, Numbers(0)).await.unwrap();
    drop(writer);
    let mut written = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut far, &mut written).await.unwrap();
    let messages = written.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let shown: Vec<String> = messages.map(|message| format!("{} {}", message["method"], message["params"])).collect();
    let note = "\"note\" null";
    let expected = ["\"number\" 1", "\"number\" 2", note, note, "\"number\" 3", note, "\"end\" null"];
    assert_eq!(shown, expected);
}
