//! Office documents as packages: zip files of XML parts.

use std::io::{BufReader, Cursor, Read};

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion, escape};
use zip::ZipArchive;

/// Maximum size of a decompressed part of an office document, in bytes.
const DOCUMENT_PART_BYTES_MAX: u64 = 64 << 20;

/// A package of XML parts.
pub(super) struct Package<'a>(ZipArchive<Cursor<&'a [u8]>>);

/// A piece of a part. Names have no namespace prefix.
pub(super) enum Xml<'a> {
    Open(&'a str, XmlAttributes<'a>),
    Close(&'a str),
    Text(&'a str),
}

pub(super) struct XmlAttributes<'a>(&'a BytesStart<'a>);

impl XmlAttributes<'_> {
    /// Returns the value of the attribute with this name, without its namespace prefix.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        let mut all = self.0.attributes().filter_map(Result::ok);
        let found = all.find(|attribute| attribute.key.local_name().as_ref() == name)?;
        Some(found.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned())
    }
}

impl<'a> Package<'a> {
    /// Opens a package, whose parts are read later.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Package<'a>, String> {
        ZipArchive::new(Cursor::new(bytes)).map(Package).map_err(|error| format!("it is damaged: {error}"))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.index_for_name(name).is_some()
    }

    /// Reads a part until `on` returns false. An unpacked part may be much larger than the package,
    /// so its size is limited.
    pub(super) fn read(&mut self, name: &str, mut on: impl FnMut(Xml<'_>) -> bool) -> Result<(), String> {
        let part = self.0.by_name(name).map_err(|error| format!("{name}: {error}"))?;
        let mut reader = Reader::from_reader(BufReader::new(part.take(DOCUMENT_PART_BYTES_MAX)));
        reader.config_mut().check_end_names = false;
        let mut buffer = Vec::new();
        loop {
            let event = reader.read_event_into(&mut buffer).map_err(|error| format!("{name}: {error}"))?;
            let continues = match &event {
                Event::Start(start) => on(Xml::Open(start.local_name().as_ref(), XmlAttributes(start))),
                Event::Empty(start) => {
                    let element = start.local_name();
                    on(Xml::Open(element.as_ref(), XmlAttributes(start))) && on(Xml::Close(element.as_ref()))
                }
                Event::End(end) => on(Xml::Close(end.local_name().as_ref())),
                Event::Text(text) => on(Xml::Text(&text.xml10_content())),
                Event::CData(text) => on(Xml::Text(&text.xml10_content())),
                Event::GeneralRef(reference) => {
                    let character = reference.resolve_char_ref().ok().flatten().map(String::from);
                    let named = || escape::resolve_xml_entity(&reference.xml10_content()).map(String::from);
                    character.or_else(named).is_none_or(|text| on(Xml::Text(&text)))
                }
                Event::Eof => false,
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => true,
            };
            if !continues {
                return Ok(());
            }
            buffer.clear();
        }
    }
}
