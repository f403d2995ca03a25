//! The bridge, as clients with a socket meet it: the real `nuncio serve`, asked by hand.

mod attacks;
mod behind;
mod drain;
mod exactly_once;
mod fields;
mod gate;
mod looking;
mod prompts;
mod routes;
mod rpc;
mod shared;
mod streams;
mod telemetry;
mod tls;
