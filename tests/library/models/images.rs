//! Images of a conversation are converted once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use harness::images::png;
use harness::provider::{Exchange, Provider};
use harness::wires::WIRES;
use nuncio::content::Part;
use nuncio::internal::model::local::LocalServers;
use nuncio::internal::model::{ImageConverter, Message};
use nuncio::internal::web::HttpClients;

use super::{ask, endpoint, image, request};

#[tokio::test]
async fn image_of_an_unchanged_message_is_converted_once() {
    for wire in WIRES {
        let answers = (0..4).map(|_| Exchange::events(wire.plain)).collect();
        let provider = Provider::start(wire.protocol, answers).await;
        let converted = Arc::new(AtomicUsize::new(0));
        let counter = converted.clone();
        let converter = ImageConverter::new(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            Box::pin(async { Ok(STANDARD.decode(png(3, 3, false)).unwrap()) })
        });
        let endpoint = endpoint("test", wire, &provider.base_url);
        let model = nuncio::internal::model::open(endpoint, &HttpClients::default(), &LocalServers::default(), converter);
        let wide = png(9000, 1, false);
        let mut all = request(vec![Message::User(vec![Part::text("look"), image(&wide), image(&wide)])]);
        for (count, more) in [(2, false), (2, false), (3, true), (3, false)] {
            if more {
                Arc::make_mut(&mut all.messages).push(Arc::new(Message::User(vec![Part::text("and"), image(&wide)])));
            }
            assert_eq!(ask(model.as_ref(), all.clone()).await.error, None);
            assert_eq!(converted.load(Ordering::Relaxed), count, "{}", wire.model);
        }
        provider.finish().await;
    }
}
