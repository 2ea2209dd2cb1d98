/** How a client of each dialect speaks: valid first requests, as the vendors' SDKs and the harnesses send them, and how it goes on. */

export type Body = Record<string, unknown>;
export type Ask = { path: string; body: Body };

export type Speaker = {
  first: readonly Ask[];
  /** The next request of the same conversation, from the answer as its client got it; null where it says nothing more. */
  next(asked: Ask, answer: Body): Ask | null;
  streamed(ask: Ask): Ask;
};

const parameters = {
  type: "object",
  properties: { command: { type: "string", description: "A shell command." }, timeout: { type: "number", minimum: 0.5 } },
  required: ["command"],
  additionalProperties: false,
};
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const system = "You are a coding agent. Work in /work, and keep your answers short.";
const model = "scripted";
const isFields = (value: unknown): value is Body => value !== null && typeof value === "object" && !Array.isArray(value);
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const streamInBody = ({ path, body }: Ask): Ask => ({ path, body: { ...body, stream: true } });

const chatTools = [
  { type: "function", function: { name: "bash", description: "Runs a command.", parameters, strict: true } },
  { type: "function", function: { name: "todo", parameters: { type: "object", properties: {} } } },
  { type: "custom", custom: { name: "apply_patch", format: { type: "grammar", grammar: { syntax: "lark", definition: "start: x" } } } },
];

const chat: Speaker = {
  first: [
    {
      path: "/v1/chat/completions",
      body: {
        model,
        messages: [
          { role: "system", content: system },
          { role: "user", name: "ada", content: [{ type: "text", text: "Repair add." }] },
          {
            role: "assistant",
            content: null,
            reasoning_content: "I look first.",
            tool_calls: [{ id: "call_1", type: "function", function: { name: "bash", arguments: '{"command": "ls", "timeout": 1.0}' } }],
          },
          { role: "tool", tool_call_id: "call_1", content: "add.js" },
          {
            role: "user",
            content: [
              { type: "text", text: "See." },
              { type: "image_url", image_url: { url: `data:image/png;base64,${pixel}`, detail: "low" } },
            ],
          },
        ],
        tools: chatTools,
        tool_choice: "auto",
        parallel_tool_calls: true,
        temperature: 0.7,
        top_p: 0.95,
        max_completion_tokens: 500,
        seed: 7,
        stop: ["Observation:"],
        reasoning_effort: "low",
        stream_options: { include_usage: true },
        metadata: { run: "1" },
        user: "ada",
      },
    },
    {
      path: "/v1/chat/completions",
      body: {
        model,
        messages: [{ role: "user", content: "hi" }],
        tools: chatTools,
        tool_choice: { type: "function", function: { name: "bash" } },
      },
    },
    {
      path: "/v1/chat/completions",
      body: {
        model,
        messages: [
          { role: "developer", content: system },
          { role: "user", content: "A title, as JSON." },
        ],
        response_format: {
          type: "json_schema",
          json_schema: { name: "title", schema: { type: "object", properties: { title: { type: "string" } } } },
        },
        tool_choice: "none",
        logit_bias: { "50": -100 },
      },
    },
  ],
  next({ path, body }, answer) {
    const message = (listOf(answer.choices)[0] as Body | undefined)?.message;
    if (!isFields(message)) return null;
    const results = listOf(message.tool_calls).map((call) => ({
      role: "tool",
      tool_call_id: isFields(call) ? call.id : "",
      content: "done",
    }));
    return { path, body: { ...body, messages: [...listOf(body.messages), message, ...results, { role: "user", content: "Go on." }] } };
  },
  streamed: streamInBody,
};

const responses: Speaker = {
  first: [
    {
      path: "/v1/responses",
      body: {
        model,
        instructions: system,
        input: [
          { type: "message", role: "developer", content: [{ type: "input_text", text: "<permissions>" }] },
          {
            type: "message",
            role: "user",
            content: [
              { type: "input_text", text: "Repair add." },
              { type: "input_image", image_url: `data:image/png;base64,${pixel}`, detail: "auto" },
            ],
          },
          { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "I look." }], content: null, encrypted_content: null },
          { type: "function_call", id: "fc_1", call_id: "c1", name: "bash", arguments: '{"command":"ls"}', status: "completed" },
          { type: "function_call_output", call_id: "c1", output: "add.js" },
          { type: "local_shell_call", call_id: "c2", status: "completed", action: { type: "exec", command: ["ls"], env: {} } },
          { type: "local_shell_call_output", id: "c2", output: "add.js" },
          { type: "computer_call", id: "cu_1", call_id: "c3", actions: [{ type: "screenshot" }], pending_safety_checks: [] },
          {
            type: "computer_call_output",
            call_id: "c3",
            output: { type: "computer_screenshot", image_url: `data:image/png;base64,${pixel}` },
          },
          { type: "message", role: "user", content: "Go." },
        ],
        tools: [
          { type: "function", name: "bash", description: "Runs a command.", parameters, strict: false },
          { type: "custom", name: "apply_patch", format: { type: "grammar", syntax: "lark", definition: "start: x" } },
          { type: "namespace", name: "agents", tools: [{ type: "function", name: "spawn", parameters }] },
          { type: "local_shell" },
          { type: "shell" },
          { type: "computer" },
          { type: "computer_use_preview", display_width: 1280, display_height: 800, environment: "linux" },
          { type: "web_search" },
        ],
        tool_choice: "auto",
        parallel_tool_calls: false,
        reasoning: { effort: "medium", summary: "auto" },
        include: ["reasoning.encrypted_content"],
        store: true,
        prompt_cache_key: "thread-1",
        text: { verbosity: "low" },
        metadata: { run: "1" },
      },
    },
    {
      path: "/v1/responses",
      body: {
        model,
        input: "hi",
        tools: [{ type: "function", name: "bash", parameters }],
        tool_choice: { type: "function", name: "bash" },
      },
    },
    {
      path: "/v1/responses/compact",
      body: {
        model,
        input: [
          { role: "user", content: "Repair add." },
          { role: "assistant", content: "I did." },
        ],
      },
    },
    { path: "/v1/conversations", body: { items: [{ type: "message", role: "user", content: "Repair add." }], metadata: { topic: "add" } } },
    { path: "/v1/responses/input_tokens", body: { model, input: "hi" } },
  ],
  next({ path, body }, answer) {
    if (path === "/v1/conversations") return { path: "/v1/responses", body: { model, conversation: answer.id, input: "Go on." } };
    if (!Array.isArray(answer.output)) return null;
    const results = answer.output.flatMap((item: unknown): Body[] => {
      if (!isFields(item) || typeof item.call_id !== "string") return [];
      const { type, call_id } = item;
      if (type === "computer_call")
        return [
          { type: "computer_call_output", call_id, output: { type: "computer_screenshot", image_url: `data:image/png;base64,${pixel}` } },
        ];
      return [{ type: String(type).startsWith("custom") ? "custom_tool_call_output" : "function_call_output", call_id, output: "done" }];
    });
    const more = [...results, { role: "user", content: "Go on." }];
    // Half of the clients name the answer, the others send it again.
    if (more.length % 2 === 1 && path === "/v1/responses")
      return { path, body: { ...body, previous_response_id: answer.id, conversation: undefined, input: more } };
    const before = typeof body.input === "string" ? [{ role: "user", content: body.input }] : listOf(body.input);
    return { path: "/v1/responses", body: { ...body, input: [...(path === "/v1/responses" ? before : []), ...answer.output, ...more] } };
  },
  streamed: streamInBody,
};

const anthropic: Speaker = {
  first: [
    {
      path: "/v1/messages",
      body: {
        model,
        max_tokens: 500,
        system: [{ type: "text", text: system, cache_control: { type: "ephemeral" } }],
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "Repair add." },
              { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } },
            ],
          },
          {
            role: "assistant",
            content: [
              { type: "thinking", thinking: "I look.", signature: "EqRs" },
              { type: "text", text: "I look first." },
              { type: "tool_use", id: "toolu_1", name: "bash", input: { command: "ls", timeout: 1 } },
            ],
          },
          {
            role: "user",
            content: [
              { type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "text", text: "add.js" }], is_error: false },
              { type: "text", text: "Go." },
            ],
          },
        ],
        tools: [
          { name: "bash", description: "Runs a command.", input_schema: parameters },
          { type: "custom", name: "todo", input_schema: { type: "object", properties: {} }, defer_loading: true },
          { type: "text_editor_20250728", name: "str_replace_based_edit_tool" },
          { type: "computer_20251124", name: "computer", display_width_px: 1280, display_height_px: 800, enable_zoom: true },
          { type: "web_search_20250305", name: "web_search" },
        ],
        tool_choice: { type: "auto", disable_parallel_tool_use: true },
        thinking: { type: "enabled", budget_tokens: 1024 },
        temperature: 1,
        metadata: { user_id: "ada" },
        stop_sequences: ["Observation:"],
      },
    },
    {
      path: "/v1/messages",
      body: {
        model,
        max_tokens: 9,
        messages: [{ role: "user", content: "hi" }],
        tools: [{ type: "bash_20250124", name: "bash" }],
        tool_choice: { type: "tool", name: "bash" },
      },
    },
    { path: "/v1/messages/count_tokens", body: { model, messages: [{ role: "user", content: "hi" }] } },
  ],
  next({ body }, answer) {
    if (!Array.isArray(answer.content)) return null;
    const results = answer.content.flatMap((block: unknown): Body[] =>
      isFields(block) && block.type === "tool_use" ? [{ type: "tool_result", tool_use_id: block.id, content: "done" }] : [],
    );
    const said = { role: "assistant", content: answer.content };
    const more = { role: "user", content: [...results, { type: "text", text: "Go on." }] };
    return { path: "/v1/messages", body: { ...body, messages: [...listOf(body.messages), said, more] } };
  },
  streamed: streamInBody,
};

const google: Speaker = {
  first: [
    {
      path: `/v1beta/models/${model}:generateContent`,
      body: {
        systemInstruction: { role: "user", parts: [{ text: system }] },
        contents: [
          { role: "user", parts: [{ text: "Repair add." }, { inlineData: { mimeType: "image/png", data: pixel } }] },
          {
            role: "model",
            parts: [
              { text: "I look.", thought: true },
              { functionCall: { id: "f1", name: "bash", args: { command: "ls", timeout: 1 } }, thoughtSignature: "Eqrs" },
            ],
          },
          { role: "user", parts: [{ functionResponse: { id: "f1", name: "bash", response: { output: "add.js" } } }, { text: "Go." }] },
        ],
        tools: [
          {
            functionDeclarations: [
              { name: "bash", description: "Runs a command.", parametersJsonSchema: parameters },
              {
                name: "todo",
                parameters: { type: "OBJECT", properties: { n: { type: "INTEGER", minLength: "1" } }, propertyOrdering: ["n"] },
              },
            ],
          },
          { googleSearch: {} },
          { computerUse: { environment: "ENVIRONMENT_BROWSER", excludedPredefinedFunctions: ["search"] } },
        ],
        toolConfig: { functionCallingConfig: { mode: "AUTO" } },
        generationConfig: {
          temperature: 1,
          topP: 0.95,
          topK: 64,
          maxOutputTokens: 500,
          thinkingConfig: { includeThoughts: true, thinkingLevel: "LOW" },
          stopSequences: ["Observation:"],
        },
        safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_NONE" }],
      },
    },
    {
      path: `/v1beta/models/${model}:generateContent`,
      body: {
        contents: [{ parts: [{ text: "hi" }] }],
        tools: [{ function_declarations: [{ name: "bash", parameters: { type: "OBJECT" } }] }],
        tool_config: { function_calling_config: { mode: "ANY", allowed_function_names: ["bash"] } },
      },
    },
    {
      path: `/v1beta/models/${model}:generateContent`,
      body: {
        contents: [{ role: "user", parts: [{ text: "As JSON." }] }],
        generationConfig: {
          responseMimeType: "application/json",
          responseSchema: { type: "OBJECT", properties: { a: { type: "STRING", nullable: true } } },
        },
      },
    },
    { path: `/v1beta/models/${model}:countTokens`, body: { contents: [{ role: "user", parts: [{ text: "hi" }] }] } },
  ],
  next({ path, body }, answer) {
    const content = (listOf(answer.candidates)[0] as Body | undefined)?.content;
    if (!isFields(content)) return null;
    const results = listOf(content.parts).flatMap((part): Body[] => {
      const call = isFields(part) ? part.functionCall : null;
      return isFields(call) ? [{ functionResponse: { id: call.id, name: call.name, response: { output: "done" } } }] : [];
    });
    return {
      path,
      body: { ...body, contents: [...listOf(body.contents), content, { role: "user", parts: [...results, { text: "Go on." }] }] },
    };
  },
  streamed: ({ path, body }) => ({ path: `${path.replace(":generateContent", ":streamGenerateContent")}?alt=sse`, body }),
};

const completions: Speaker = {
  first: [
    {
      path: "/v1/completions",
      body: { model, prompt: "Once upon a time", max_tokens: 50, temperature: 0.8, stop: "\n\n", seed: 3, user: "ada" },
    },
    { path: "/v1/completions", body: { model, prompt: [79, 110, 99, 101], max_tokens: 5, echo: false, n: 1 } },
  ],
  next({ path, body }, answer) {
    const text = (listOf(answer.choices)[0] as Body | undefined)?.text;
    return typeof body.prompt === "string" && typeof text === "string"
      ? { path, body: { ...body, prompt: `${body.prompt}${text} And then` } }
      : null;
  },
  streamed: streamInBody,
};

/** By the dialect's name; the first three requests generate in each, or are all there are. */
export const speakers: ReadonlyMap<string, Speaker> = new Map([
  ["openai-chat", chat],
  ["openai-responses", responses],
  ["anthropic-messages", anthropic],
  ["google-generate-content", google],
  ["openai-completions", completions],
]);
