//! `/mcp`: the MCP gateway on the same port, with sessions of their own for each token (HT-7).

use crate::{
    access::{Caller, Scope, Token},
    app::App,
    problem::Problem,
};
use axum::{
    body::Body,
    extract::{Request, State},
    response::Response,
};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};
use tokio_util::sync::CancellationToken;
use toolyard::{Engine, SessionOptions};
use toolyard_mcp::{ClientLimits, Clients, Gateway, Mounted};

/// The gateways, by the tokens of their clients.
pub(crate) struct Gateways {
    engine: Engine,
    clients: Clients,
    limits: ClientLimits,
    stop: CancellationToken,
    by_token: Mutex<HashMap<String, OfToken>>,
}

/// The gateway of a token, and what ends it.
struct OfToken {
    mounted: Mounted,
    stop: CancellationToken,
}

impl Gateways {
    pub(crate) fn new(
        engine: Engine,
        clients: Clients,
        limits: ClientLimits,
        stop: CancellationToken,
    ) -> Self {
        Self { engine, clients, limits, stop, by_token: Mutex::default() }
    }

    /// That of a token; `options` are those of its sessions.
    ///
    /// # Errors
    /// The token is not admitted any more.
    fn of(&self, token: &Token, options: impl FnOnce() -> SessionOptions) -> Result<Mounted, Problem> {
        let mut all = self.by_token.lock();
        // Looked at under the lock, under which those of tokens that are gone end.
        if token.gone.is_cancelled() {
            return Err(Problem::unknown_token());
        }
        if let Some(own) = all.get(token.name()) {
            return Ok(own.mounted.clone());
        }
        let gateway = Gateway::new(self.engine.clone(), self.clients.clone());
        let gateway = gateway.client_limits(self.limits).session_options(options());
        // A name that a client gives itself must not find what another one has done under it.
        let gateway = if self.engine.is_outlived() { gateway.unique_sessions() } else { gateway };
        let gateway = if token.has(Scope::Approve) { gateway } else { gateway.without_questions() };
        let stop = self.stop.child_token();
        let mounted = gateway.mounted(stop.clone());
        all.insert(token.name().to_owned(), OfToken { mounted: mounted.clone(), stop });
        Ok(mounted)
    }

    /// Ends those of tokens that are not admitted any more.
    pub(crate) fn end(&self, gone: &[Arc<Token>]) {
        let mut all = self.by_token.lock();
        for own in gone.iter().filter_map(|token| all.remove(token.name())) {
            own.stop.cancel();
        }
    }
}

/// Answers an MCP client.
pub(super) async fn answer(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    caller.needs(&[Scope::Call])?;
    app.starts()?;
    let mounted = app.gateways.of(&caller.0, || super::sessions::options_of(&app, &caller.0))?;
    Ok(mounted.answer(request).await.map(Body::new))
}
