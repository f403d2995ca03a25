//! Models of the configured providers: resolution, lists and prices.

pub(super) mod keys;
pub(super) mod list_refresh;
pub(super) mod login_state;
pub(super) mod model_choices;
pub(super) mod model_lists;
pub(super) mod models;
pub(super) mod price;
pub(super) mod stored_keys;
