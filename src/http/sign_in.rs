//! The sign-in of the console: `POST /console/login`, `/console/logout` and `/console/code`. Other
//! clients send their token with each request.

use std::sync::Arc;

use axum::Extension;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::SET_COOKIE;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::auth::{cookie_name, login_cookie, token};
use super::logins::{CODE, LOGIN};
use super::params;
use super::response::{self, ApiError};
use super::state::{AppState, StateExtension};
use crate::error::{Error, Result};
use crate::json as json_text;
use crate::task;

/// Paths of the sign-in.
pub(crate) const LOGIN_PATH: &str = "/console/login";
pub(crate) const LOGOUT_PATH: &str = "/console/logout";
pub(crate) const CODE_PATH: &str = "/console/code";

/// A token, or a code that was created with one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Credential {
    token: Option<String>,
    code: Option<String>,
    /// True: the browser keeps the cookie when it ends.
    #[serde(default)]
    keep: bool,
}

/// Signs a browser in: answers with a cookie.
pub(crate) async fn login(Extension(state): StateExtension, request: Request) -> Result<Response, ApiError> {
    params::is_plain_json(request.headers())?;
    let (head, body) = request.into_parts();
    state.auth.is_own_page(&head.headers)?;
    let bytes = params::bytes(&state, body).await?;
    let credential: Credential =
        json_text::from_slice(&bytes).map_err(|error| Error::invalid_params(format!("the body is not a sign-in: {error}")))?;
    let digest = state.auth.digest_of(credential.token.as_deref(), credential.code.as_deref())?;
    let signing = state.clone();
    let cookie = task::blocking("signing in", move || signing.auth.logins.sign_in(&digest)).await??;
    let lasts = if credential.keep { format!("; Max-Age={}", LOGIN.as_secs()) } else { String::new() };
    let (name, is_secure) = cookie_name(&head.headers);
    let secure = if is_secure { "; Secure" } else { "" };
    Ok(with_cookie(json!({}), &format!("{name}={cookie}; Path=/; HttpOnly; SameSite=Strict{secure}{lasts}")))
}

/// Ends the sign-in of a browser.
pub(crate) async fn logout(Extension(state): StateExtension, request: Request) -> Result<Response, ApiError> {
    let (name, is_secure) = cookie_name(request.headers());
    if let Some(cookie) = login_cookie(request.headers()).map(str::to_owned) {
        task::blocking("signing out", move || state.auth.logins.sign_out(&cookie)).await??;
    }
    let secure = if is_secure { "; Secure" } else { "" };
    Ok(with_cookie(json!({}), &format!("{name}=; Path=/; HttpOnly; SameSite=Strict{secure}; Max-Age=0")))
}

/// Creates a code with which another browser signs in, once.
pub(crate) async fn code(Extension(state): StateExtension, request: Request) -> Result<Response, ApiError> {
    let code = new_code(&state, &request)?;
    Ok(response::json(200, &json!({ "code": code, "expiresS": CODE.as_secs() })))
}

fn new_code(state: &Arc<AppState>, request: &Request) -> Result<String> {
    let headers = request.headers();
    let digest = match token(headers) {
        Some(token) => state.auth.digest_of(Some(token), None)?,
        None => login_cookie(headers)
            .and_then(|cookie| state.auth.logins.token_of(cookie))
            .ok_or_else(|| Error::internal("no sign-in"))?,
    };
    state.auth.logins.new_code(digest)
}

fn with_cookie(body: Value, cookie: &str) -> Response {
    let mut response = response::json(200, &body);
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(SET_COOKIE, value);
    }
    response
}
