//! What handlers read of a request, with errors that say what is wrong.

use super::Held;
use crate::{access::Caller, app::App, problem::Problem};
use axum::{
    extract::{FromRequest, FromRequestParts, Path, Query, Request},
    http::{Extensions, HeaderMap, StatusCode, header, request::Parts},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// How deep a body may be nested, at most; serde_json has the same bound.
const POINTER_PARTS_MAX: usize = 128;

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = app.access.caller(&parts.headers)?;
        admit(&parts.extensions, app, &caller)?;
        Ok(caller)
    }
}

/// Passes if there is room for the connection of a request that was admitted (HT-10).
pub(crate) fn admit(extensions: &Extensions, app: &App, caller: &Caller) -> Result<(), Problem> {
    // A request that was not made over a connection holds none.
    extensions.get::<Held>().map_or(Ok(()), |held| held.admit(&app.connections, &caller.0))
}

/// The parameters in a path.
pub(crate) struct PathOf<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for PathOf<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let read = Path::<T>::from_request_parts(parts, app).await;
        // What cannot be the name of anything names nothing.
        read.map(|Path(value)| Self(value))
            .map_err(|_| Problem::not_found("such resource: its path cannot be one"))
    }
}

/// The parameters after a path.
pub(crate) struct QueryOf<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<App> for QueryOf<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let read = Query::<T>::from_request_parts(parts, app).await;
        read.map(|Query(value)| Self(value)).map_err(|error| Problem::malformed(error.body_text()))
    }
}

/// A body in JSON.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        expect_type(request.headers(), &["application/json"])?;
        let bytes = app.bodies.read(request.into_body()).await?;
        let value: Value = serde_json::from_slice(&bytes)
            .map_err(|error| Problem::malformed(format!("the body is not JSON: {error}")))?;
        serde_path_to_error::deserialize(value)
            .map(Self)
            .map_err(|error| Problem::invalid(&pointer(error.path()), error.inner()))
    }
}

/// Passes if the body has one of these types, which no form can send (HT-8).
pub(crate) fn expect_type(headers: &HeaderMap, types: &[&str]) -> Result<(), Problem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|given| given.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    if types.iter().any(|wanted| essence.eq_ignore_ascii_case(wanted)) {
        return Ok(());
    }
    let detail = format!("send a body with 'Content-Type: {}'", types.join("' or '"));
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_type", detail))
}

/// A place in a body as a JSON pointer (RFC 6901).
pub(crate) fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let part = |segment: &Segment| match segment {
        Segment::Seq { index } => Some(format!("/{index}")),
        Segment::Map { key } => Some(format!("/{}", key.replace('~', "~0").replace('/', "~1"))),
        Segment::Enum { variant } => Some(format!("/{variant}")),
        Segment::Unknown => None,
    };
    path.iter().take(POINTER_PARTS_MAX).filter_map(part).collect()
}
