//! Forms of MCP servers and hosted agents on the terminal: one question for each field.

use serde_json::{Map, Value};

use super::lines::TerminalLines;
use super::output::print_stderr;
use crate::content::{Form, FormAnswer};
use crate::runtime::field_values;
use crate::terminal_text::{question, question_line};

/// Asks for the value of each field. The end of the input declines the form.
pub(crate) async fn fill(lines: &TerminalLines, form: &Form) -> FormAnswer {
    let mut lines = lines.lock().await;
    let fields = FormField::all(form);
    print_stderr(format!("{} asks: {}\n", question_line(&form.server), question(&form.message)));
    if fields.is_empty() {
        return if lines.confirm("Accept?").await { FormAnswer::Accepted(Map::new()) } else { FormAnswer::Declined };
    }
    print_stderr("  (Ctrl-D declines)\n");
    let mut answers = Map::new();
    for field in fields {
        print_stderr(field.text());
        loop {
            print_stderr(format!("  {}: ", field.hint()));
            let Some(line) = lines.next().await else { return FormAnswer::Declined };
            match field.read(line.trim()) {
                Ok(Some(value)) => drop(answers.insert(field.name, value)),
                Ok(None) => {}
                Err(problem) => {
                    print_stderr(format!("  {problem}\n"));
                    continue;
                }
            }
            break;
        }
    }
    FormAnswer::Accepted(answers)
}

pub(crate) struct FormField {
    pub name: String,
    schema: Value,
    required: bool,
}

impl FormField {
    /// Returns the fields of a form, in their order.
    pub(crate) fn all(form: &Form) -> Vec<FormField> {
        let is_required = |name: &str| form.schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name));
        let fields = form.schema["properties"].as_object().into_iter().flatten();
        let field = |(name, schema): (&String, &Value)| FormField {
            name: name.clone(),
            schema: schema.clone(),
            required: is_required(name),
        };
        fields.map(field).collect()
    }

    /// Describes the field and its choices, in lines.
    pub(crate) fn text(&self) -> String {
        let text = |field: &str| self.schema[field].as_str().map(question_line);
        let title = text("title").unwrap_or_else(|| question_line(&self.name));
        let description = text("description").map(|text| format!(" - {text}")).unwrap_or_default();
        let mut head = format!("  {title}{description}\n");
        for (index, (_, title)) in self.choices().unwrap_or_default().iter().enumerate() {
            head += &format!("    {}. {}\n", index + 1, question_line(title));
        }
        head
    }

    /// Reads the value of a line. `None` is a field that is omitted; the error is a message for the
    /// user.
    pub(crate) fn read(&self, line: &str) -> Result<Option<Value>, String> {
        let default = &self.schema["default"];
        match (line.is_empty(), default.is_null(), self.required) {
            (false, ..) => self.parse(line).map(Some),
            (true, false, _) => Ok(Some(default.clone())),
            (true, true, false) => Ok(None),
            (true, true, true) => Err("a value is required".into()),
        }
    }

    /// Returns the values to choose from, with their titles.
    fn choices(&self) -> Option<Vec<(String, String)>> {
        let schema = if self.is_list() { &self.schema["items"] } else { &self.schema };
        field_values(schema)
    }

    fn is_list(&self) -> bool {
        self.schema["type"] == "array"
    }

    /// Describes the expected input, and what an empty line means.
    pub(crate) fn hint(&self) -> String {
        let kind = match (self.is_list(), self.choices().is_some(), self.schema["type"].as_str()) {
            (true, ..) => "numbers, separated by commas",
            (_, true, _) => "number",
            (.., Some("boolean")) => "yes or no",
            (.., Some("integer")) => "whole number",
            (.., Some("number")) => "number",
            _ => "text",
        };
        let empty = match (&self.schema["default"], self.required) {
            (Value::Null, true) => String::new(),
            (Value::Null, false) => ", empty: none".into(),
            (Value::String(text), _) => format!(", empty: {}", question_line(text)),
            (default, _) => format!(", empty: {}", question_line(&default.to_string())),
        };
        format!("[{kind}{empty}]")
    }

    /// Parses a line. The error is a message for the user.
    fn parse(&self, line: &str) -> Result<Value, String> {
        if let Some(choices) = self.choices() {
            let choose = |text: &str| {
                let number = text.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
                let named = || choices.iter().find(|(value, title)| value == text || title.eq_ignore_ascii_case(text));
                let chosen = number.or_else(named).map(|(value, _)| Value::from(value.as_str()));
                chosen.ok_or_else(|| format!("give a number from 1 to {}", choices.len()))
            };
            return match self.is_list() {
                true => line.split(',').map(|part| choose(part.trim())).collect::<Result<Vec<_>, _>>().map(Value::from),
                false => choose(line),
            };
        }
        match self.schema["type"].as_str() {
            Some("boolean") => match line.to_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(true.into()),
                "n" | "no" | "false" => Ok(false.into()),
                _ => Err("answer yes or no".into()),
            },
            Some("integer") => {
                let number = line.parse::<i64>().map_err(|_| "give a whole number".to_owned())?;
                self.within(number as f64).map(|()| number.into())
            }
            Some("number") => {
                let number = line.parse::<f64>().ok().filter(|number| number.is_finite());
                let number = number.ok_or_else(|| "give a number".to_owned())?;
                self.within(number).map(|()| number.into())
            }
            _ => self.check_length(line).map(|()| line.into()),
        }
    }

    /// Returns an error if a number is not between `minimum` and `maximum`.
    fn within(&self, number: f64) -> Result<(), String> {
        match (self.schema["minimum"].as_f64(), self.schema["maximum"].as_f64()) {
            (Some(least), _) if number < least => Err(format!("must be at least {least}")),
            (_, Some(most)) if number > most => Err(format!("must be at most {most}")),
            _ => Ok(()),
        }
    }

    /// Returns an error if a text is not as long as `minLength` and `maxLength` allow.
    fn check_length(&self, text: &str) -> Result<(), String> {
        let length = text.chars().count() as u64;
        match (self.schema["minLength"].as_u64(), self.schema["maxLength"].as_u64()) {
            (Some(least), _) if length < least => Err(format!("must have at least {least} characters")),
            (_, Some(most)) if length > most => Err(format!("must have at most {most} characters")),
            _ => Ok(()),
        }
    }
}
