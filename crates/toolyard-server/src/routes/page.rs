//! The page, and the exchange of its link for a key (HT-9).

use super::document::Common;
use crate::{access::Scope, app::App, http::Json, problem::Problem};
use axum::{
    Router,
    extract::State,
    http::{StatusCode, Uri, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use serde::{Deserialize, Serialize};
use toolyard_page::{Asset, PAGE_POLICY, asset};
use utoipa::ToSchema;

/// The code of a link.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Code {
    code: String,
}

/// The key that it was exchanged for.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Key {
    /// To be sent as a bearer token.
    key: String,
    /// The name under which its answers are recorded.
    name: String,
    scopes: Vec<Scope>,
}

/// Exchange the one-time code of the page's link for a key.
#[utoipa::path(post, path = "/page/key", tag = "page", request_body = Code, security(()),
    responses((status = 200, description = "The key, once", body = Key), Common))]
pub(super) async fn exchange(
    State(app): State<App>,
    Json(given): Json<Code>,
) -> Result<axum::Json<Key>, Problem> {
    let exchanged = app.access.link().and_then(|link| link.exchange(&given.code));
    let (key, token) = exchanged.ok_or_else(|| {
        let detail =
            "this link was used, or its server has ended: start the server again and open the link it prints";
        Problem::new(StatusCode::UNAUTHORIZED, "link_used", detail)
    })?;
    Ok(axum::Json(Key { key, name: token.name().to_owned(), scopes: token.scopes().collect() }))
}

/// The files of the page, if it is served. They hold nothing that is secret, and need no token.
pub(super) fn files(app: &App) -> Router<App> {
    match app.access.link() {
        Some(_) => Router::new().route("/", get(file)).route("/page/{*path}", get(file)),
        None => Router::new(),
    }
}

async fn file(uri: Uri) -> Response {
    match asset(uri.path()) {
        Some(Asset { content_type, body }) => {
            let headers =
                [(header::CONTENT_TYPE, content_type), (header::CONTENT_SECURITY_POLICY, PAGE_POLICY)];
            (headers, body).into_response()
        }
        None => Problem::not_found("such file of the page").into_response(),
    }
}
