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
//! # Features
//! `https`: TLS, with rustls and graviola, without C code. Without it an origin over TLS is refused when it is
//! configured.

mod address;
mod dial;
mod egress;
mod exchange;
mod not_sent;
mod origin;
mod resolve;
mod service;
mod stream;
#[cfg(feature = "https")]
mod tls;
#[cfg(not(feature = "https"))]
#[path = "no_tls.rs"]
mod tls;

pub use address::{Addresses, NotPublic};
pub use egress::Egress;
pub use not_sent::NotSent;
pub use origin::OriginError;
pub use resolve::{Resolver, SystemResolver};
pub use service::{CallFailed, RemoteService, ServiceError};
