//! The known properties of models on local servers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use parking_lot::Mutex;

use super::api::LocalApi;
use super::properties;
use crate::model::endpoint::Endpoint;
use crate::model::observations::Observations;
use crate::model::providers::provider;
use crate::model::reported::Properties;
use crate::model::wire_formats::{ServerScope, wire_format};
use crate::web::HttpClients;

/// How long a request waits for the properties that a local server reports of its model.
const LOCAL_PROPERTIES: Duration = Duration::from_secs(1);
/// How long the properties that a local server reported apply to later turns.
const LOCAL_PROPERTIES_FRESH: Duration = Duration::from_secs(60);
/// Maximum number of models on local servers whose properties are kept.
const LOCAL_MODELS_MAX: usize = 256;

/// The properties of models that servers report. Shared by all clones.
#[derive(Clone, Debug, Default)]
pub struct LocalServers {
    /// The properties that local servers reported, by base URL and name.
    reported: Arc<Mutex<ReportedProperties>>,
    /// The facts that errors of servers revealed.
    pub(in crate::model) observed: Observations,
}

#[derive(Debug, Default)]
struct ReportedProperties(HashMap<String, HashMap<String, ServerEntry>>);

impl ReportedProperties {
    fn get(&self, endpoint: &Endpoint) -> Option<ServerEntry> {
        self.0.get(&endpoint.base_url)?.get(&endpoint.model).copied()
    }

    fn insert(&mut self, endpoint: &Endpoint, entry: ServerEntry) {
        if self.0.values().map(HashMap::len).sum::<usize>() >= LOCAL_MODELS_MAX {
            self.0.clear();
        }
        self.0.entry(endpoint.base_url.clone()).or_default().insert(endpoint.model.clone(), entry);
    }
}

#[derive(Clone, Copy, Debug)]
struct ServerEntry {
    properties: Properties,
    state: State,
    /// The end of the request for the properties.
    at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// The properties do not change while the server runs, which may have been restarted.
    Final,
    /// The server may report other properties later.
    Preliminary,
    /// The server did not answer in time.
    Silent,
}

/// Returns whether the endpoint's server may be a local server with an API that reports properties.
fn is_local(endpoint: &Endpoint) -> bool {
    let servers = wire_format(endpoint.protocol).reports_properties;
    let known = || provider(endpoint.provider()).is_some_and(|provider| provider.local);
    servers.includes(endpoint) || servers == ServerScope::Local && known()
}

impl LocalServers {
    /// Keeps the facts that errors reveal in this directory, for later processes.
    pub(crate) fn keep_in(&self, data: &Path) {
        self.observed.keep_in(data);
    }

    /// Returns the known properties of the endpoint's model, without a request to the server.
    pub(crate) fn properties(&self, endpoint: &Endpoint) -> Properties {
        self.reported.lock().get(endpoint).map(|known| known.properties).unwrap_or_default()
    }

    /// Returns the properties of the endpoint's model. Asks the server, for [`LOCAL_PROPERTIES`] at
    /// most, unless the properties are final. With `insist`, also asks a server that did not answer
    /// in time, and asks again for properties that are older than [`LOCAL_PROPERTIES_FRESH`].
    pub(crate) async fn ask(&self, clients: &HttpClients, endpoint: &Endpoint, insist: bool) -> Properties {
        if !is_local(endpoint) {
            return Properties::default();
        }
        let known = self.reported.lock().get(endpoint);
        if let Some(known) = known
            && match known.state {
                State::Final => !insist || known.at.elapsed() < LOCAL_PROPERTIES_FRESH,
                State::Silent => !insist,
                State::Preliminary => false,
            }
        {
            return known.properties;
        }
        let server = LocalApi::from_endpoint(clients, endpoint);
        let answer = tokio::time::timeout(LOCAL_PROPERTIES, properties::query(&server, endpoint)).await;
        let earlier = known.map(|known| known.properties).unwrap_or_default();
        let at = Instant::now();
        let known = match answer {
            Ok(Ok((properties, true))) => ServerEntry { properties, state: State::Final, at },
            Ok(Ok((properties, false))) => ServerEntry { properties, state: State::Preliminary, at },
            Ok(Err(_)) => ServerEntry { properties: earlier, state: State::Preliminary, at },
            Err(_) => ServerEntry { properties: earlier, state: State::Silent, at },
        };
        self.reported.lock().insert(endpoint, known);
        known.properties
    }

    /// Forgets the properties of the endpoint's model, because the server was stopped: it may start
    /// with other settings.
    pub(crate) fn forget(&self, endpoint: &Endpoint) {
        if let Some(models) = self.reported.lock().0.get_mut(&endpoint.base_url) {
            models.remove(&endpoint.model);
        }
    }
}
