//! JSON encoding of event bodies: known types are encoded by their fields, unknown types as their
//! stored text. In the store, the signature of an event is the first field of its body.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Body, Event, TYPES, UnknownEvent};

/// Start of the stored text of an event with a signature.
const SIGNED: &str = "{\"signature\":\"";

impl Event {
    /// Returns the text of the event in the store: its body and its signature.
    pub(crate) fn stored(&self) -> serde_json::Result<String> {
        let body = serde_json::to_string(&self.body)?;
        Ok(match &self.signature {
            Some(signature) => format!("{SIGNED}{signature}\",{}", &body[1..]),
            None => body,
        })
    }
}

impl Body {
    /// Parses the text of an event in the store: its body and its signature.
    pub(crate) fn parse_stored(text: &str) -> serde_json::Result<(Body, Option<Box<str>>)> {
        match text.strip_prefix(SIGNED).and_then(|rest| rest.split_once("\",")) {
            Some((signature, rest)) => Ok((Body::parse(&format!("{{{rest}"))?, Some(signature.into()))),
            None => Ok((Body::parse(text)?, None)),
        }
    }

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
