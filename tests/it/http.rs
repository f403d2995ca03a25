//! The bridge, as clients with a socket meet it: the real `nuncio serve`, asked by hand.

mod prompts;
mod routes;
mod rpc;
mod streams;
mod telemetry;
