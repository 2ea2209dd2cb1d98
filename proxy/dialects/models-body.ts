/** Models, one or all. Both vendors' SDKs send `GET /v1/models`, and only a header differs, so one body answers both. */
export function modelsBody(models: string[]): Record<string, unknown> {
  return { object: "list", data: models.map(modelBody), has_more: false, first_id: models[0] ?? null, last_id: models.at(-1) ?? null };
}

export function modelBody(id: string): Record<string, unknown> {
  return {
    id,
    object: "model",
    // No engine says when its model was made; the epoch is what both APIs write for an unknown date.
    created: 0,
    owned_by: "alidade",
    type: "model",
    display_name: id,
    created_at: "1970-01-01T00:00:00Z",
  };
}
