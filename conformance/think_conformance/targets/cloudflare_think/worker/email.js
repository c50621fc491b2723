// Stands in for `cloudflare:email`, which plain workerd does not have and the agent never uses.
export class EmailMessage {}
