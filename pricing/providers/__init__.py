"""Price sources, one module each, with a `fetch(session)`; pricing/sources.py lists them.

aws_on_demand       AWS on-demand and reserved prices from the bulk price list of each
                    region, without a key
aws_spot            AWS spot prices (spot.js) with the interruptions of the Spot Advisor,
                    without a key
azure_retail        Azure retail prices: on-demand, spot, reservations and savings plans,
                    without a key
boundary            rows of feeds become offers: shapes are checked, and names are made
                    canonical
digitalocean        DigitalOcean GPU Droplets, with an API token: the sizes that can be
                    created now, by region
exchange_rates      reference exchange rates of the European Central Bank: dollars per
                    unit of a currency
gcp_skus            GCP machines assembled from the SKUs of the Cloud Billing catalogue,
                    with an API key
gcp_yaml            GCP machine prices, ready assembled, from a YAML file that is updated
                    weekly, without a key
gpu_price_archive   the archived price pages of the gpu-price-index collection: ten sellers,
                    2023 to 2026, no key
gpu_price_feed      the gpu-price-feed collection: list prices of seven sellers, collected
                    daily, without a key
gpu_price_index     the gpu-price-index collection: prices of Shadeform, RunPod and Verda,
                    daily, without a key
gpuhunt_catalogue   the gpuhunt catalogue: one zip with one CSV per provider, published
                    hourly, without a key
hyperstack          Hyperstack flavours that are in stock, with an API key, at the prices of
                    its price book
lambda_cloud        Lambda instance types with live capacity, with an API key
oci                 Oracle Cloud list prices of GPU shapes, without a key
runpod              RunPod GPU types through GraphQL, without a key, as far as there is
                    something left to rent
skypilot_catalogue  the SkyPilot catalogue: one CSV per cloud, without a key, with a
                    mirror for busy days
tpu_slices          TPU slices in price feeds, as the price of one chip
vast                Vast.ai marketplace offers, without a key: verified hosts of
                    reliability 0.98 and better
verda               Verda (formerly DataCrunch) instance types; with OAuth client
                    credentials, where they are left
vultr               Vultr plans, without a key: cloud GPUs and bare metal, on demand and
                    preemptible
"""
