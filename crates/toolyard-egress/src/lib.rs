//! The one guarded door by which what tools send leaves this machine (SB-10).
//!
//! ```text
//!                        ┌───────────────────────── Egress ──────────────────────────┐
//!   Service ─► Remote ─► │ host ─► literal address ──────────────► judged ─┐         │
//!   and Given  Service   │     └─► name ─► Resolver ─► addresses ─► judged ┴► dialled │ ─► [TLS] ─► one request
//!      ▲                 └───────────────────── NotSent ─────────────────────────────┘          │
//!      └──────────────────────────── Answered, or CallFailed ◄──────────────────────────────────┘
//! ```
//!
//! An address is judged when it is known, right before that very address is dialled: a name is looked up once for a
//! connection, so that a resolver which answers something else the next time gains nothing.
//!
//! Nothing of HTTP that could lead elsewhere is here to be switched off: one request has one connection and is written
//! once, redirects and statuses are handed on, and no variable of the environment is read. No task is started: whoever
//! drops the future of a call has ended its connection.
//!
//! The [`Proxy`] is the same way out for processes that have no network of their own:
//!
//! ```text
//!   a process ─► Listener ─┬─ CONNECT host:port ─────► granted? ─┬─► Egress ─► host, opaque
//!                          ├─ GET http://host/… ─────► granted? ─┘
//!                          └─ GET /NAME/… ─► Upstream, its secret added ─► Egress ─► [TLS] ─► its origin
//!                ◄──────────────────────────── its secret covered ◄──────────────────────────────┘
//! ```
//!
//! What confines the process is that it has nothing but the listener, a port of its own network namespace or a socket
//! that is bound into its mount namespace. Variables such as `HTTPS_PROXY=http://127.0.0.1:PORT` are for the
//! convenience of programs; with them goes `NO_PROXY=127.0.0.1`, or a program asks the proxy for itself to reach an
//! upstream.
//!
//! # Features
//! `https`: TLS, with rustls and graviola, without C code. Without it an origin over TLS is refused when it is
//! configured.

mod address;
mod dial;
mod egress;
mod exchange;
mod not_sent;
mod origin;
mod proxy;
mod resolve;
mod secret_header;
mod service;
mod setup_error;
mod stream;
mod target;
#[cfg(feature = "https")]
mod tls;
#[cfg(not(feature = "https"))]
#[path = "no_tls.rs"]
mod tls;
mod webhook;

pub use address::{Addresses, NotPublic};
pub use egress::Egress;
pub use not_sent::NotSent;
pub use origin::OriginError;
pub use proxy::{
    Door, Listener, Observer, PROXY_VARIABLES, Proxy, ProxyLimits, Quota, Traffic, Upstream, Verdict, Visit,
};
pub use resolve::{Resolver, SystemResolver};
pub use service::{CallFailed, RemoteService};
pub use setup_error::SetupError;
#[cfg(feature = "https")]
pub use tls::tls_provider;
pub use webhook::Webhook;
