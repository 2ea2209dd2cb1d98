/**
 * The embedded engine's tokenizer and chat template as files, in the format of transformers: with them vLLM serves the taught
 * model. They lie beside the weights:
 *
 *     node examples/train/tokenizer.ts
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { merges } from "../../practice/tokenizer/merges.ts";
import { endOfTurn, firstAddedId, isHidden, printableToken, vocabularySize } from "../../practice/tokenizer/vocabulary.ts";
import { taughtModel } from "./taught.ts";

const endOfText = firstAddedId;

/** Writes `tokenizer.json`, `tokenizer_config.json` and `generation_config.json`. */
export async function writeTokenizer(folder: string): Promise<void> {
  const files = { "tokenizer.json": tokenizer(), "tokenizer_config.json": tokenizerConfig(), "generation_config.json": generationConfig() };
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), `${JSON.stringify(content, null, 1)}\n`);
}

/** Leaves out the names of pictures: their ids are beyond the model's vocabulary. */
function tokenizer(): unknown {
  const added = Array.from({ length: vocabularySize - firstAddedId }, (_, at) => firstAddedId + at);
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: added.map((id) => ({
      id,
      content: printableToken(id),
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: isHidden(id),
    })),
    normalizer: null,
    // This tokenizer splits words by bytes. So bytes are first replaced by their printable names, and the pattern matches names.
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [
        { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
        { type: "Split", pattern: { Regex: wordOfNames() }, behavior: "Isolated", invert: false },
      ],
    },
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(Array.from({ length: firstAddedId }, (_, id) => [printableToken(id), id])),
      merges: Array.from({ length: merges.length / 2 }, (_, at) => merges.slice(2 * at, 2 * at + 2).map(printableToken)),
    },
  };
}

/** The pattern `word` of practice/tokenizer/bpe.ts, with the printable name of each byte in its place. */
function wordOfNames(): string {
  const [tab, newline, carriageReturn, space] = [9, 10, 13, 32].map(printableToken);
  const high = Array.from({ length: 128 }, (_, at) => printableToken(128 + at)).join("");
  const marks = "!-/:-@\\[-`{-~";
  return [
    `${space}?[A-Za-z${high}]{1,48}`,
    "[0-9]",
    `${space}?[${marks}]{1,48}`,
    `[${space}${tab}]{0,48}[${carriageReturn}${newline}]{1,48}`,
    `[${space}${tab}]{1,48}(?![^${space}${tab}${carriageReturn}${newline}])`,
    ".",
  ].join("|");
}

function tokenizerConfig(): unknown {
  return {
    tokenizer_class: "PreTrainedTokenizerFast",
    clean_up_tokenization_spaces: false,
    bos_token: null,
    eos_token: printableToken(endOfTurn),
    pad_token: printableToken(endOfText),
    unk_token: null,
    chat_template: chatTemplate,
  };
}

/** Without this file, servers may take the end-of-turn id from the architecture's defaults. Here these ids are bytes. */
function generationConfig(): unknown {
  return { bos_token_id: null, eos_token_id: endOfTurn, pad_token_id: endOfText, do_sample: true, temperature: 1, top_k: 0, top_p: 1 };
}

/**
 * `renderChat` of practice/template.ts in Jinja, for the messages that vLLM gives to templates. A turn prints as it was sampled.
 * vLLM's parsers may leave line breaks at the ends of thought and text. These are not written twice. vLLM parses the arguments of
 * calls. They print with the spaces that the model writes. Arguments that are text print as they are.
 */
const chatTemplate = String.raw`
{%- macro text_of(content) -%}
  {%- if content is string -%}{{ content }}
  {%- else -%}
    {%- for part in content or [] -%}
      {%- if part.text is not string -%}{{ raise_exception('This model reads text; a message has a part of type "' ~ part.type ~ '".') }}{%- endif -%}
      {{- part.text if loop.first else '\n' ~ part.text -}}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro -%}
{%- macro turn(role, text) -%}{{ '<|im_start|>' ~ role ~ '\n' ~ text ~ '<|im_end|>\n' }}{%- endmacro -%}
{%- macro call_of(call) -%}
  {%- set sent = '{}' if call.arguments is none or call.arguments is undefined else call.arguments -%}
  {{- '<tool_call>\n{"name": ' ~ call.name | tojson(ensure_ascii=False) ~ ', "arguments": ' -}}
  {{- (sent if sent is string else sent | tojson(ensure_ascii=False)) ~ '}\n</tool_call>' -}}
{%- endmacro -%}
{%- set opens_with_rules = messages | length > 0 and messages[0].role in ['system', 'developer'] -%}
{%- set listed = namespace(text='') -%}
{%- if tools -%}
  {%- set listed.text = 'These functions can be called:\n<tools>\n' -%}
  {%- for tool in tools -%}
    {%- set listed.text = listed.text ~ tool | tojson(ensure_ascii=False, separators=(',', ':')) ~ '\n' -%}
  {%- endfor -%}
  {%- set listed.text = listed.text ~ '</tools>\nA call is written as\n<tool_call>\n{"name": <name>, "arguments": <object>}\n</tool_call>' -%}
{%- endif -%}
{%- if opens_with_rules -%}
  {%- set rules = text_of(messages[0].content) -%}
  {{- turn(messages[0].role, rules ~ ('\n\n' if rules and listed.text else '') ~ listed.text) -}}
{%- elif listed.text -%}
  {{- turn('system', listed.text) -}}
{%- endif -%}
{%- for message in (messages[1:] if opens_with_rules else messages) -%}
  {%- if message.role == 'tool' -%}
    {{- turn('tool', '<tool_response>\n' ~ text_of(message.content) ~ '\n</tool_response>') -}}
  {%- elif message.role != 'assistant' -%}
    {{- turn(message.role, text_of(message.content)) -}}
  {%- else -%}
    {%- set thought = message.reasoning if message.reasoning is string else message.reasoning_content -%}
    {%- set said = namespace(text=text_of(message.content)) -%}
    {%- for call in message.tool_calls or [] -%}
      {%- set said.text = said.text ~ ('' if not said.text or said.text.endswith('\n') else '\n') ~ call_of(call.function) -%}
    {%- endfor -%}
    {%- set opened = '' if not thought else '<think>' ~ ('' if thought.startswith('\n') else '\n') ~ thought -%}
    {%- set closed = '' if not thought else ('' if thought.endswith('\n') else '\n') ~ '</think>' ~ ('' if said.text.startswith('\n\n') else '\n\n') -%}
    {{- turn('assistant', opened ~ closed ~ said.text) -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}
`.trim();

if (import.meta.main) await writeTokenizer(taughtModel);
