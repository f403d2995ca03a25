//! JSON encoding of event bodies: known types are encoded by their fields, unknown types as their
//! stored text.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Body, TYPES, UnknownEvent};

impl Body {
    /// Parses the JSON text of a body. A known type with wrong fields is an error; a body of
    /// unknown type is kept as text.
    pub(crate) fn parse(text: &str) -> serde_json::Result<Body> {
        #[derive(Deserialize)]
        struct Tag {
            #[serde(rename = "type")]
            name: String,
        }
        let known = Body::deserialize(&mut serde_json::Deserializer::from_str(text));
        let Err(error) = known else { return known };
        match serde_json::from_str::<Tag>(text) {
            Ok(Tag { name }) if !TYPES.contains(&name.as_str()) => {
                let stored = RawValue::from_string(text.into())?.into();
                Ok(Body::Unknown(UnknownEvent { name, stored }))
            }
            _ => Err(error),
        }
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Body::Unknown(event) => event.stored.serialize(serializer),
            known => Body::serialize(known, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Body, D::Error> {
        let stored = Box::<RawValue>::deserialize(deserializer)?;
        Body::parse(stored.get()).map_err(D::Error::custom)
    }
}
