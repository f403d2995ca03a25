mod models;
mod provider;
