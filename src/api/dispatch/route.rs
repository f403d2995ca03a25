//! REST routes of methods.

/// The REST route of a method. `path` may contain placeholders for params, as in `{field}`.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// HTTP method: `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
    pub verb: &'static str,
    /// URL path, for example `/v1/sessions/{sessionId}`.
    pub path: &'static str,
    /// HTTP status of a successful response.
    pub status: u16,
    /// True if the request body may be a form with a file.
    pub takes_file: bool,
    /// True if the response is the content of a file, unless the client accepts only JSON.
    pub gives_file: bool,
    /// The operation id in the OpenAPI document. If None, the id is derived from the name of the
    /// method.
    pub operation_id: Option<&'static str>,
}

impl Route {
    const fn new(verb: &'static str, path: &'static str) -> Route {
        Route { verb, path, status: 200, takes_file: false, gives_file: false, operation_id: None }
    }

    pub(crate) const fn get(path: &'static str) -> Route {
        Route::new("GET", path)
    }

    pub(crate) const fn post(path: &'static str) -> Route {
        Route::new("POST", path)
    }

    pub(crate) const fn put(path: &'static str) -> Route {
        Route::new("PUT", path)
    }

    pub(crate) const fn patch(path: &'static str) -> Route {
        Route::new("PATCH", path)
    }

    pub(crate) const fn delete(path: &'static str) -> Route {
        Route::new("DELETE", path)
    }

    /// Sets the HTTP status of a successful response; 200 by default.
    pub(crate) const fn status(self, status: u16) -> Route {
        Route { status, ..self }
    }

    /// Lets the request body be a form with a file.
    pub(crate) const fn takes_file(self) -> Route {
        Route { takes_file: true, ..self }
    }

    /// Makes the response the content of a file.
    pub(crate) const fn gives_file(self) -> Route {
        Route { gives_file: true, ..self }
    }

    /// Sets the operation id in the OpenAPI document.
    pub(crate) const fn operation_id(self, id: &'static str) -> Route {
        Route { operation_id: Some(id), ..self }
    }
}
